package arrowio

import (
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// placing finds where the buffers of some fields are: of all at once, since
// what takes long is to read the headers of the record batches.
type placing struct {
	ctx     context.Context
	d       *Dataset
	fields  []*arrowtype.Field
	numbers []int // of their columns in the files
	batches int   // how many of the dataset's are looked at
	columns []*table.Column
}

// load finds the buffers of fields in every record batch, and dictionaries.
func (d *Dataset) load(fields []int) ([]*table.Column, error) {
	p := placing{ctx: d.life, d: d, batches: d.files[len(d.files)-1].end()}
	for _, i := range fields {
		p.add(d.table.Fields[i], d.columns[i])
	}
	dictionaries := make([][][]*arrowtype.Dictionary, len(d.files))
	err := parallel(len(d.files), func(i int) (err error) {
		if err := p.file(d.files[i]); err != nil {
			return err
		}
		dictionaries[i], err = p.dictionaries(d.files[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, ofFile := range dictionaries {
		for k, list := range ofFile {
			p.columns[k].Dictionaries = append(p.columns[k].Dictionaries, list...)
		}
	}
	p.finish()
	return p.columns, nil
}

// find finds the buffers of one field in the first record batches.
func (d *Dataset) find(ctx context.Context, field *arrowtype.Field, number, batches int) (*table.Column, error) {
	p := placing{ctx: ctx, d: d, batches: batches}
	p.add(field, number)
	for _, f := range d.files {
		if err := p.file(f); err != nil {
			return nil, err
		}
	}
	p.finish()
	return p.columns[0], nil
}

// add makes room for a field's places.
func (p *placing) add(field *arrowtype.Field, number int) {
	c := &table.Column{Planes: make([]table.Plane, len(field.Levels))}
	counted := false // the level outside is one of lists with offsets
	for n, level := range field.Levels {
		if p.d.nulls[number] {
			c.Planes[n].Valid = make([]int64, p.batches)
		}
		if level.Buffer().Bits > 0 {
			c.Planes[n].Data = make([]int64, p.batches)
		}
		if counted {
			c.Planes[n].Length = make([]int64, p.batches)
		}
		counted = !level.Direct()
	}
	p.fields, p.numbers, p.columns = append(p.fields, field), append(p.numbers, number), append(p.columns, c)
}

// file adds the places in one file. Several files may be added at a time.
func (p *placing) file(f *file) error {
	last := min(len(f.units), p.batches-f.first)
	if last <= 0 {
		return nil
	}
	return f.scan(p.ctx, last, func(i int, u unit) error {
		if want := p.d.table.Index.Rows(f.first + i); u.rows() != want {
			return status.Errorf(status.DataLoss, "arrowio", "record batch %d has %d rows, but had %d when the file was opened", i, u.rows(), want).
				WithHint("do not write to files that are open")
		}
		for k, number := range p.numbers {
			u.place(p.columns[k], f.first+i, number, p.fields[k])
		}
		return nil
	})
}

// place notes the places of a field in one record batch.
func place(c *table.Column, field *arrowtype.Field, batch int, col *arrowmeta.Column, b *arrowmeta.RecordBatch, body int64) {
	packed := b.Compression != arrowmeta.Uncompressed
	for n := range field.Levels {
		p, node, buffers := &c.Planes[n], b.Node(col), b.Buffers(col)
		if p.Valid != nil {
			p.Valid[batch] = -1
			if col.Validity && node.Nulls > 0 && !packed {
				p.Valid[batch] = body + buffers[0].Offset
			}
		}
		if p.Data != nil {
			p.Data[batch] = body + buffers[dataBuffer(col)].Offset
		}
		if p.Length != nil {
			p.Length[batch] = node.Length
		}
		if n+1 < len(field.Levels) {
			col = &col.Children[0]
		}
	}
}

// finish drops the validity of nodes that have no nulls.
func (p *placing) finish() {
	for _, c := range p.columns {
		for n := range c.Planes {
			if !slices.ContainsFunc(c.Planes[n].Valid, func(at int64) bool { return at >= 0 }) {
				c.Planes[n].Valid = nil
			}
		}
	}
}

// dataBuffer gives the number of the buffer that holds offsets, indices or
// values.
func dataBuffer(c *arrowmeta.Column) int {
	if c.Validity {
		return 1
	}
	return 0
}
