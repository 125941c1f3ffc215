package arrowio

import (
	"cmp"
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// dictionaries reads the values of the fields' dictionaries in one file, as
// they are at each record batch: a stream may append to a dictionary or replace
// it on the way. The list of a field without one is empty.
func (p *placing) dictionaries(f *file) ([][]*table.Dictionary, error) {
	all := make([][]*table.Dictionary, len(p.fields))
	users := map[int64][]int{} // of each dictionary: the fields, by their place in p
	for k, field := range p.fields {
		if field.Values != nil {
			id := dictionaryID(&f.meta.Schema.Fields[p.numbers[k]])
			users[id] = append(users[id], k)
			all[k] = []*table.Dictionary{{From: int32(f.first)}}
		}
	}
	if len(users) == 0 {
		return all, nil
	}
	begun := map[int64]bool{}
	return all, f.named(f.meta.ScanDictionaries(f.reader(p.ctx), func(i int, b *arrowmeta.DictionaryBatch) error {
		if !f.meta.Stream && !b.Delta && begun[b.ID] {
			return replacedInFile(i, b.ID)
		}
		begun[b.ID] = true
		for _, k := range users[b.ID] {
			next, err := f.dictionary(p.ctx, i, b, p.fields[k].Values, &p.d.codecs)
			if err != nil {
				return err
			}
			all[k] = follow(all[k], next, b.Delta)
		}
		return nil
	}))
}

// replacedInFile is the error for a dictionary batch that takes the place of
// another one.
func replacedInFile(batch int, id int64) error {
	return status.Errorf(status.DataLoss, "arrowio", "dictionary batch %d replaces dictionary %d, which only streams may do", batch, id).
		WithHint("write one dictionary for all record batches, with pyarrow: table.unify_dictionaries()")
}

// follow adds what a dictionary is from some record batch on. What a delta
// appends to is used by earlier batches only as far as it went then, so that
// both share their memory.
func follow(list []*table.Dictionary, next *table.Dictionary, delta bool) []*table.Dictionary {
	last := list[len(list)-1]
	if delta {
		next.Values, next.Len = append(last.Values, next.Values...), last.Len+next.Len
	}
	if next.From == last.From {
		list = list[:len(list)-1]
	}
	return append(list, next)
}

// dictionaryID gives the number of the dictionary that a column, or the values
// of its lists, use.
func dictionaryID(f *arrowmeta.Field) int64 {
	for f.Dictionary == nil {
		f = &f.Type.Children[0]
	}
	return f.Dictionary.ID
}

// dictionary reads one dictionary batch.
func (f *file) dictionary(ctx context.Context, i int, b *arrowmeta.DictionaryBatch, values *table.Field, c *codecs) (*table.Dictionary, error) {
	block := f.meta.Dictionaries[i]
	u := unpacker{r: f.reader(ctx), body: block.Body(), batch: &b.RecordBatch, codec: c}
	decoded, err := u.field(values, b.Values)
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "field %q: dictionary batch %d: %w", values.Name, i, err).
			WithHint("the data are damaged; write them again").With("field", values.Name)
	}
	for _, n := range decoded.Nodes {
		if n.Valid != nil {
			return nil, status.Errorf(status.Unsupported, "arrowio", "field %q: its dictionary has nulls among its values", values.Name).
				WithHint("let the indices be null instead, as pyarrow's dictionary_encode does").With("field", values.Name)
		}
	}
	from := 0
	if f.meta.Stream {
		from, _ = slices.BinarySearchFunc(f.meta.Batches, block.Offset, func(b arrowmeta.Block, off int64) int { return cmp.Compare(b.Offset, off) })
	}
	data := decoded.Nodes[len(decoded.Nodes)-1].Data
	return &table.Dictionary{From: int32(f.first + from), Len: b.Length, Values: data[:b.Length*int64(values.RowBytes())]}, nil
}
