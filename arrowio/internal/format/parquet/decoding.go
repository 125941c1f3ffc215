package parquet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// place is a column of a unit.
type place struct{ unit, column int }

// decoding is a format.Decoding.
type decoding struct {
	part
	at    place
	field *arrowtype.Field
	limit int64 // bytes of memory
}

// Decoding implements format.Contents. It estimates the stored bytes, and the memory of the
// decoding.
func (c *file) Decoding(ctx context.Context, unit, column int, field *arrowtype.Field) (format.Decoding, error) {
	p, err := c.part(ctx, &c.units[unit], c.leaf(column))
	if err != nil {
		return format.Decoding{}, c.failed(c.units[unit].group, column, err)
	}
	d := &decoding{part: p, at: place{unit, column}, field: field, limit: p.estimate()}
	if _, large := c.large.Load(d.at); large {
		d.limit = format.MaxColumn
	}
	return format.Decoding{Memory: d.limit, Run: d.run}, nil
}

// run reads and decodes the column.
func (d *decoding) run(ctx context.Context, lists bool) (*buffers.Decoded, error) {
	began := time.Now()
	shape := lists && !d.field.HasInline(d.field.Structs()) // the offsets of text are in its values
	col, reading, err := d.decode(ctx, shape, d.limit)
	if err != nil {
		return nil, d.failed(err)
	}
	if !(header{d.file, d.unit}).Nulls(d.at.column).May && !complete(col) {
		return nil, d.file.failed(d.unit.group, d.at.column, errors.New("it has nulls, but the metadata of the file say that it has none"))
	}
	out, err := arrowBuffers(col, d.schema(), d.field, shape, d.limit)
	if err != nil {
		return nil, d.failed(d.grown(err, d.limit))
	}
	out.Reading, out.Unpacking = reading, time.Since(began)-reading
	return out, nil
}

// failed returns the error of the decoding. The next one gets all memory that it may take if
// this one needs more.
func (d *decoding) failed(err error) error {
	if errors.Is(err, format.ErrEstimate) {
		d.file.large.Store(d.at, true)
	}
	return d.file.failed(d.unit.group, d.at.column, err)
}

// complete reports whether neither a value nor a list is null.
func complete(col *chunk.Column) bool {
	return col.Valid == nil && !slices.ContainsFunc(col.Lists, func(l chunk.List) bool { return l.Valid != nil })
}
