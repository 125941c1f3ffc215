package arrowio

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// setFields sorts the columns into fields and skipped ones.
func (d *Dataset) setFields(ctx context.Context, o Options) error {
	schema := d.files[0].schema
	fields, reasons, err := d.describe(ctx, o)
	if err != nil {
		return err
	}
	for i, field := range fields {
		f := &schema.Fields[i]
		if reasons[i] != "" {
			d.table.Schema.Skipped = append(d.table.Schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reasons[i]})
			continue
		}
		d.columns = append(d.columns, i)
		d.table.Fields = append(d.table.Fields, field)
		d.table.Schema.Fields = append(d.table.Schema.Fields, field.Source(d.nulls[i]))
	}
	return nil
}

// describe gives for each column what its rows are, or the reason why they
// cannot be those of an array.
func (d *Dataset) describe(ctx context.Context, o Options) (fields []*table.Field, reasons []string, err error) {
	fields, reasons, err = table.Fields(d.files[0].schema, o.Shapes)
	if err != nil {
		return nil, nil, err
	}
	measured := map[int]*table.Field{} // whose lists have a length that no type gives
	for i, f := range fields {
		if !d.files[0].located[i] {
			reasons[i] = "a column before it has a type that is not known"
		}
		if reasons[i] == "" && f.HasLists() {
			measured[i] = f
		}
		if reasons[i] != "" || !f.Open() {
			continue
		}
		reasons[i], err = f.Measure(func(shape []int) (string, error) { return d.firstShape(ctx, f, i, shape) })
		if err != nil {
			return nil, nil, err
		}
	}
	if err := d.ragged(ctx, measured, reasons); err != nil {
		return nil, nil, err
	}
	for i, f := range measured {
		if given := o.Shapes[f.Name]; given != nil && reasons[i] != "" {
			reason, _, _ := strings.Cut(reasons[i], "; ")
			return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "field %q cannot have rows of shape %v: %s", f.Name, given, reason).
				WithHint("leave its shape out, correct it, or pad or cut the lists to one length").With("field", f.Name)
		}
	}
	return fields, reasons, nil
}

// ragged adds the reasons why lists of some columns cannot be rows of one
// shape, as far as the headers of the record batches and a few offsets tell.
func (d *Dataset) ragged(ctx context.Context, columns map[int]*table.Field, reasons []string) error {
	if len(columns) == 0 {
		return nil
	}
	found := make([]map[int]string, len(d.files))
	err := parallel(len(d.files), func(k int) error {
		f := d.files[k]
		found[k] = map[int]string{}
		return f.scan(ctx, len(f.units), func(_ int, u unit) error {
			for column, field := range columns {
				if found[k][column] != "" || reasons[column] != "" {
					continue
				}
				reason, err := u.uneven(column, field)
				if err != nil {
					return err
				}
				found[k][column] = reason
			}
			return nil
		})
	})
	for column := range columns {
		for k := range found {
			reasons[column] = cmp.Or(reasons[column], found[k][column])
		}
	}
	return err
}

// uneven compares the number of lists with the number of their values.
func (u *ipcBatch) uneven(column int, field *table.Field) (string, error) {
	b, col := u.header, &u.file.meta.Columns[column]
	for n, node := range field.Nodes[:len(field.Nodes)-1] {
		child := &col.Children[0]
		lists, values := b.Node(col), b.Node(child).Length
		if node.Kind == table.List {
			have, want := values, (lists.Length-lists.Nulls)*int64(node.Size)
			if have > want && n == 0 && lists.Nulls == 0 && b.Compression == arrowmeta.Uncompressed {
				var err error // values before the first list or after the last are legal
				if have, err = u.referenced(col, lists.Length, node.Width); err != nil {
					return "", err
				}
			}
			if have < want || have > want && n == 0 && lists.Nulls == 0 {
				return totals(lists.Length-lists.Nulls, have, int64(node.Size)), nil
			}
		}
		col = child
	}
	return "", nil
}

// totals says what is wrong with the number of values that lists hold.
func totals(lists, values, size int64) string {
	if lists > 0 && values%lists == 0 {
		return fmt.Sprintf("%d lists hold %d values, %d each, where the shape of the rows needs %d; pad or cut them to one length", lists, values, values/lists, size)
	}
	return fmt.Sprintf("its lists differ in length: %d lists hold %d values, where %d each would be %d; pad or cut them to one length", lists, values, size, lists*size)
}

// referenced gives how many values the lists of a column hold.
func (u *ipcBatch) referenced(col *arrowmeta.Column, lists int64, width int) (int64, error) {
	at := u.file.facts.units[u.number].offset + u.header.Buffers(col)[dataBuffer(col)].Offset
	var ends [2]int64
	for k, list := range []int64{0, lists} {
		var offset [8]byte
		if err := blob.ReadFull(u.ctx, u.file.content, offset[:width], at+list*int64(width)); err != nil {
			return 0, err
		}
		ends[k] = table.Integer(offset[:], width)
	}
	return ends[1] - ends[0], nil
}
