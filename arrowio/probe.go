package arrowio

import (
	"context"
	"fmt"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/status"
)

// firstShape sets the lengths that are still open to those of the first record
// that is not null, of the first few.
func (d *Dataset) firstShape(ctx context.Context, f *table.Field, column int, shape []int) (reason string, err error) {
	if d.Len() == 0 {
		return "its lists have no declared length, and there is no record to take it from; give its shape", nil
	}
	records := min(d.Len(), 64)
	last, _ := d.table.Index.Locate(records - 1)
	c, err := d.find(ctx, f, column, int(last)+1)
	if err != nil {
		return "", err
	}
	for record := range records {
		batch, row := d.table.Index.Locate(record)
		p := probe{ctx: ctx, d: d, field: f, column: c, batch: batch}
		found, err := p.shape(column, row, shape)
		if err != nil {
			return "", err
		}
		if found {
			for i, n := range shape {
				if n == 0 {
					return fmt.Sprintf("record %d, which its shape is taken from, has an empty list in dimension %d; give its shape", record, i), nil
				}
			}
			return "", nil
		}
	}
	return "its first records are null; give its shape", nil
}

// probe follows one row to find the lengths of its lists.
type probe struct {
	ctx     context.Context
	d       *Dataset
	field   *table.Field
	column  *table.Column
	batch   int32
	decoded *table.Decoded
}

// shape fills the open lengths with those of a row, and is false for one with
// nulls.
func (p *probe) shape(column int, row int64, shape []int) (found bool, err error) {
	if (*store)(p.d).Encoded(p.d.table.File(p.batch)) {
		if p.decoded, err = p.d.decode(p.ctx, p.batch, p.field, column, true); err != nil {
			return false, err
		}
	}
	start := row
	for n, node := range p.field.Nodes {
		null, err := p.null(n, start)
		if null || err != nil {
			return false, err
		}
		switch node.Kind {
		case table.Fixed:
			start *= int64(node.Size)
		case table.List:
			offsets, err := p.bytes(n, start*int64(node.Width), 2*int64(node.Width))
			if err != nil {
				return false, err
			}
			from, to := table.Integer(offsets, node.Width), table.Integer(offsets[node.Width:], node.Width)
			if from < 0 || to < from || to-from > 1<<31 {
				return false, p.damaged("a list from element %d to %d", from, to)
			}
			if shape[n] < 0 {
				shape[n] = int(to - from)
			}
			if to == from {
				return true, nil
			}
			start = from
		}
	}
	return true, nil
}

func (p *probe) null(n int, start int64) (bool, error) {
	if p.decoded != nil {
		v := p.decoded.Nodes[n].Valid
		return v != nil && start>>3 < int64(len(v)) && v[start>>3]>>(start&7)&1 == 0, nil
	}
	valid := p.column.Planes[n].Valid
	if valid == nil || valid[p.batch] < 0 {
		return false, nil
	}
	b, err := p.read(valid[p.batch]+start>>3, 1)
	return err == nil && b[0]>>(start&7)&1 == 0, err
}

func (p *probe) bytes(n int, off, length int64) ([]byte, error) {
	if p.decoded == nil {
		return p.read(p.column.Planes[n].Data[p.batch]+off, length)
	}
	data := p.decoded.Nodes[n].Data
	if off > int64(len(data))-length {
		return nil, p.damaged("offsets beyond their buffer")
	}
	return data[off : off+length], nil
}

func (p *probe) read(off, length int64) ([]byte, error) {
	b, f := make([]byte, length), (*store)(p.d).of(p.batch)
	if off < 0 || off > f.content.Size()-length {
		return nil, p.damaged("offsets beyond the end of the file")
	}
	return b, f.readFull(p.ctx, b, off)
}

func (p *probe) damaged(format string, args ...any) error {
	e := status.Errorf(status.DataLoss, "arrowio", "field %q: "+format, append([]any{p.field.Name}, args...)...).
		WithHint("the data are damaged; write them again").With("field", p.field.Name)
	return (*store)(p.d).Named(p.batch, e)
}
