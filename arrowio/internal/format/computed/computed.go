// Package computed presents the rows of a source as the units of a file, so that computed rows
// are kept as decoded units are.
//
// A unit is a run of records. Its rows are computed once for all fields, in one pass over the source,
// because one field of a view may cost as much as all of them. A field of a unit is
// stored as lists of plain values, whatever type the values stand for (column.go).
package computed

import (
	"context"
	"encoding/binary"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

const (
	// unitBytes is about how many bytes a unit has. It is the size of a part on disk, and a gather
	// waits for a whole unit.
	unitBytes = 8 << 20

	// maxUnitRows bounds the records of a unit, because each costs time besides its bytes.
	maxUnitRows = 1 << 20

	// samples is how many rows of ragged fields are read to estimate the size of a row.
	samples = 64
)

// Contents are the units of a source. They implement format.Contents.
type Contents struct {
	fields   []*arrowtype.Field
	schema   source.Schema
	reader   source.Reader
	passes   format.Passes
	metadata format.Metadata
	rows     []int64 // by unit
	rowBytes int64   // estimate
}

// New divides a source into units. It reads some rows of ragged fields. Life ends when no more rows
// are needed.
func New(ctx, life context.Context, src source.Source) (*Contents, error) {
	c := &Contents{schema: src.Schema(), rowBytes: 1}
	all := make([]int, len(c.schema.Fields))
	for i, f := range c.schema.Fields {
		all[i] = i
		c.fields = append(c.fields, arrowtype.Listed(f.Name, f.Type, f.Shape, f.Ragged, f.Lists))
		if !varies(f) {
			c.rowBytes += int64(f.RowBytes())
		}
	}
	var err error
	if c.reader, err = src.Reader(all); err != nil {
		return nil, err
	}
	if err := c.sample(ctx, src.Len()); err != nil {
		_ = c.reader.Close()
		return nil, err
	}
	c.divide(src.Len())
	c.passes.Decode = func(_ context.Context, unit int) ([]*buffers.Decoded, error) { return c.compute(life, unit) }
	return c, nil
}

// varies reports whether the rows of a field may differ in length.
func varies(f source.Field) bool { return f.Ragged > 0 || f.Lists }

// sample adds the mean size of some rows of ragged fields to the estimate. Their records do not
// depend on chance, so that all processes have the same units.
func (c *Contents) sample(ctx context.Context, records int64) error {
	var spans []source.Span
	n := min(records, samples)
	for i, f := range c.schema.Fields {
		for k := range n {
			if varies(f) {
				spans = append(spans, source.Span{Field: i, Record: records / n * k})
			}
		}
	}
	if len(spans) == 0 {
		return nil
	}
	return c.reader.Read(ctx, source.Draw{}, spans, func() error {
		total := int64(0)
		for _, s := range spans {
			total += int64(len(s.Row)) + 8
		}
		c.rowBytes += total / n
		return nil
	})
}

// divide divides the records into units.
func (c *Contents) divide(records int64) {
	each := min(max(unitBytes/c.rowBytes, 1), maxUnitRows)
	m := &c.metadata
	m.Format = "view"
	for first := int64(0); first < records; first += each {
		rows := min(each, records-first)
		c.rows = append(c.rows, rows)
		m.Units = append(m.Units, resident.Extent{Offset: first, Length: rows})
		m.Bytes = append(m.Bytes, rows*c.rowBytes)
	}
	binary.LittleEndian.PutUint64(m.Digest[:], uint64(each))
}

// Fields describes how the rows of each field are stored.
func (c *Contents) Fields() []*arrowtype.Field { return c.fields }

// Close closes the reader of the source. No call may run.
func (c *Contents) Close() error { return c.reader.Close() }

// Metadata implements format.Contents. There is no schema, because a field has the type that the
// source gives it.
func (c *Contents) Metadata() *format.Metadata { return &c.metadata }

// Scan implements format.Contents.
func (c *Contents) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return format.Encoded{Records: c.rows[i], As: "computed", NullsOf: c.nulls} }, visit)
}

func (c *Contents) nulls(column int) buffers.Nulls {
	f := &c.schema.Fields[column]
	return buffers.Nulls{May: f.Nullable, Has: f.HasNulls}
}

// Decoding implements format.Contents. It reserves no memory, because the source may decode files for
// it: a decoding that holds a reservation while it waits for another one could wait forever.
func (c *Contents) Decoding(_ context.Context, unit, column int, _ *arrowtype.Field) (format.Decoding, error) {
	return format.Decoding{Run: func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
		return c.passes.Column(ctx, unit, column, lists)
	}}, nil
}

// Size implements format.Contents.
func (*Contents) Size(context.Context, int, int, *arrowtype.Field) (int64, error) { return -1, nil }

// Stored implements format.Contents. No bytes are stored.
func (*Contents) Stored(int, int) []resident.Extent { return nil }

// Dictionaries implements format.Contents. No column has one.
func (*Contents) Dictionaries(_ context.Context, columns []int, _ []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	return make([][]*arrowtype.Dictionary, len(columns)), nil
}

// Verify implements format.Contents. The source verifies itself.
func (*Contents) Verify(context.Context, []int, func(int64)) error { return nil }
