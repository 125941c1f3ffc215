package arrowio

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/status"
)

// dictionaries reads the values of a field's dictionary, as they are at each
// record batch: a stream may append to a dictionary or replace it on the way.
func (d *Dataset) dictionaries(f *table.Field, column int) ([]*table.Dictionary, error) {
	var all []*table.Dictionary
	for _, file := range d.files {
		all = append(all, &table.Dictionary{From: int32(file.first)})
		id := dictionaryID(&file.meta.Schema.Fields[column])
		err := file.named(file.meta.ScanDictionaries(file.content, func(i int, b *arrowmeta.DictionaryBatch) error {
			if b.ID != id {
				return nil
			}
			next, err := file.dictionary(i, b, f.Values, &d.codecs)
			if err != nil {
				return err
			}
			last := all[len(all)-1]
			if b.Delta {
				next.Values = append(slices.Clone(last.Values), next.Values...)
				next.Len += last.Len
			}
			if next.From == last.From {
				*last = *next
				return nil
			}
			all = append(all, next)
			return nil
		}))
		if err != nil {
			return nil, err
		}
	}
	return all, nil
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
func (f *file) dictionary(i int, b *arrowmeta.DictionaryBatch, values *table.Field, c *codecs) (*table.Dictionary, error) {
	block := f.meta.Dictionaries[i]
	u := unpacker{r: f.content, body: block.Body(), batch: &b.RecordBatch, codec: c}
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
