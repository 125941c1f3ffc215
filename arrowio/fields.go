package arrowio

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// setFields sorts the columns into fields and skipped ones.
func (d *Dataset) setFields(nulls []bool, o Options) error {
	meta := d.files[0].meta
	declared := meta.Schema.RowShapes()
	known := map[string]bool{}
	for i := range meta.Schema.Fields {
		f := &meta.Schema.Fields[i]
		field, reason := table.Describe(f)
		if known[f.Name] {
			reason = "a column before it has the same name"
		}
		known[f.Name] = true
		if !meta.Columns[i].Located {
			reason = "a column before it has a type that is not known"
		}
		if reason == "" {
			var err error
			if reason, err = d.resolve(field, i, declared[i], o.Shapes[f.Name]); err != nil {
				return err
			}
		}
		if reason != "" {
			d.table.Schema.Skipped = append(d.table.Schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reason})
			continue
		}
		d.columns = append(d.columns, i)
		d.table.Fields = append(d.table.Fields, field)
		d.table.Schema.Fields = append(d.table.Schema.Fields, field.Source(nulls[i]))
	}
	for name := range o.Shapes {
		if !known[name] {
			return status.Errorf(status.InvalidArgument, "arrowio", "a shape is given for %q, but there is no such column", name).With("field", name)
		}
	}
	return nil
}

// resolve finds the shape of rows that are lists of variable length: as given,
// else as declared in the metadata, else as in the first record. What was given
// must fit; otherwise a field that does not is skipped with a reason.
func (d *Dataset) resolve(f *table.Field, column int, declared, given []int) (reason string, err error) {
	if given != nil {
		if err := f.Resolve(given); err != nil {
			return "", status.Errorf(status.InvalidArgument, "arrowio", "field %q %w", f.Name, err).
				WithHint("leave its shape out, or correct it").With("field", f.Name)
		}
	}
	if !f.Open() {
		return "", nil
	}
	shape := slices.Clone(f.Shape)
	if len(declared) == len(shape) {
		for i, n := range declared {
			if shape[i] < 0 {
				shape[i] = n
			}
		}
	}
	if slices.Contains(shape, -1) {
		if reason, err = d.firstShape(f, column, shape); reason != "" || err != nil {
			return reason, err
		}
	}
	if err := f.Resolve(shape); err != nil {
		return "it " + err.Error(), nil
	}
	return d.ragged(f, column)
}

// ragged gives the reason why lists cannot be rows of one shape, as far as
// the headers of the record batches and a few offsets tell.
func (d *Dataset) ragged(f *table.Field, column int) (reason string, err error) {
	for _, file := range d.files {
		err := file.batches(func(i int, b *arrowmeta.RecordBatch) error {
			if reason == "" {
				reason, err = file.raggedBatch(i, b, f, &file.meta.Columns[column])
			}
			return err
		})
		if reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// raggedBatch compares the number of lists with the number of their values.
func (f *file) raggedBatch(i int, b *arrowmeta.RecordBatch, field *table.Field, col *arrowmeta.Column) (string, error) {
	for n, node := range field.Nodes[:len(field.Nodes)-1] {
		child := &col.Children[0]
		lists, values := b.Node(col), b.Node(child).Length
		if node.Kind == table.List {
			have, want := values, (lists.Length-lists.Nulls)*int64(node.Size)
			if have > want && n == 0 && lists.Nulls == 0 && b.Compression == arrowmeta.Uncompressed {
				var err error // values before the first list or after the last are legal
				if have, err = f.referenced(i, b, col, lists.Length, node.Width); err != nil {
					return "", err
				}
			}
			if have < want || have > want && n == 0 && lists.Nulls == 0 {
				return fmt.Sprintf("its lists differ in length: %d lists hold %d values, where %d each would be %d; pad or cut them to one length",
					lists.Length-lists.Nulls, have, node.Size, want), nil
			}
		}
		col = child
	}
	return "", nil
}

// referenced gives how many values the lists of a column hold.
func (f *file) referenced(i int, b *arrowmeta.RecordBatch, col *arrowmeta.Column, lists int64, width int) (int64, error) {
	at := f.meta.Batches[i].Body() + b.Buffers(col)[dataBuffer(col)].Offset
	var ends [2]int64
	for k, list := range []int64{0, lists} {
		var offset [8]byte
		if _, err := f.content.ReadAt(offset[:width], at+list*int64(width)); err != nil {
			return 0, err
		}
		ends[k] = table.Integer(offset[:], width)
	}
	return ends[1] - ends[0], nil
}

func (d *Dataset) file(batch int) int32 {
	if d.table.Files == nil {
		return 0
	}
	return d.table.Files[batch]
}
