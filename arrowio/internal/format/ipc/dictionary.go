package ipc

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Dictionaries implements format.Contents. It reads the values of dictionaries as they are at
// each record batch: a stream may append to a dictionary or replace it on the way.
func (c *file) Dictionaries(ctx context.Context, columns []int, fields []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	all := make([][]*arrowtype.Dictionary, len(fields))
	users := map[int64][]int{} // by dictionary: indices into fields
	for k, field := range fields {
		if field.Dictionary() != nil {
			id := dictionaryID(&c.meta.Schema.Fields[columns[k]])
			users[id] = append(users[id], k)
			all[k] = []*arrowtype.Dictionary{{}}
		}
	}
	if len(users) == 0 {
		return all, nil
	}
	begun := map[int64]bool{}
	return all, c.meta.ScanDictionaries(c.reader(ctx), func(i int, b *arrowmeta.DictionaryBatch) error {
		if !c.meta.Stream && !b.Delta && begun[b.ID] {
			return audit.ReplacedDictionary(i, b.ID)
		}
		begun[b.ID] = true
		for _, k := range users[b.ID] {
			next, err := c.dictionary(ctx, i, b, fields[k].Dictionary())
			if err != nil {
				return err
			}
			all[k] = extend(all[k], next, b.Delta)
		}
		return nil
	})
}

// extend adds a version of a dictionary. A delta appends to the version before.
// Both may share memory: an earlier batch uses only the first Len values.
func extend(list []*arrowtype.Dictionary, next *arrowtype.Dictionary, delta bool) []*arrowtype.Dictionary {
	last := list[len(list)-1]
	if delta {
		next = last.Append(next)
	}
	if next.From == last.From {
		list = list[:len(list)-1]
	}
	return append(list, next)
}

// dictionaryID returns the number of the dictionary that a column or the values in its lists use.
func dictionaryID(f *arrowmeta.Field) int64 {
	for f.Dictionary == nil {
		f = &f.Type.Children[0]
	}
	return f.Dictionary.ID
}

// dictionary reads one dictionary batch.
func (c *file) dictionary(ctx context.Context, i int, b *arrowmeta.DictionaryBatch, values *arrowtype.Field) (*arrowtype.Dictionary, error) {
	block := c.meta.Dictionaries[i]
	u := unpacker{r: c.reader(ctx), body: block.Body(), batch: &b.RecordBatch}
	decoded, err := u.field(values, b.Values)
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "field %q: dictionary batch %d: %w", values.Name, i, err).
			WithHint("the data are damaged; write them again").With("field", values.Name)
	}
	for _, n := range decoded.Levels {
		if n.Valid != nil {
			return nil, status.Errorf(status.Unsupported, "arrowio", "field %q: its dictionary has nulls among its values", values.Name).
				WithHint("let the indices be null instead, as pyarrow's dictionary_encode does").With("field", values.Name)
		}
	}
	out := &arrowtype.Dictionary{From: int32(c.meta.FirstUser(block)), Len: b.Length}
	switch first := &decoded.Levels[0]; {
	case values.HasViews():
		err = out.SetViews(first.Data, first.Buffers)
	case values.HasInline(0) && b.Length > 0:
		err = out.SetText(first.Data, decoded.Levels[1].Data, int(values.Levels[0].Buffer().Bits/8))
	case !values.HasInline(0):
		out.Values = decoded.Levels[len(decoded.Levels)-1].Data[:b.Length*int64(values.RowBytes())]
	}
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "field %q: dictionary batch %d: %w", values.Name, i, err).
			WithHint("the data are damaged; write them again").With("field", values.Name)
	}
	return out, nil
}
