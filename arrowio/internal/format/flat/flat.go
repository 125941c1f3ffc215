// Package flat reads files of elements that lie one after the other: raw files, which hold
// nothing else, .npy files, and the pairs of Megatron, which are documents in a raw file and an index.
// A file has the single field [Field]. A record is an element, a row of an array of several
// dimensions, or a document. Nothing is decoded, and rows are gathered as they are stored.
//
// A unit is a run of about 8 MiB. The file has no marks there: units exist so that rows can be
// converted, and shuffled in blocks, in pieces of that size.
package flat

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Field is the name of the field.
const Field = "tokens"

// unitBytes is about how many bytes a unit has.
const unitBytes = 8 << 20

// array is where the elements of a file are: records rows of a shape, from byte start on.
type array struct {
	typ     dtype.Type
	shape   []int // of a row
	start   int64
	records int64
}

// open returns the contents of a file with an array. The error is Unsupported for rows that no
// field can have.
func (a array) open(content *resident.File, name string) (format.Contents, error) {
	column := a.column()
	field, reason := arrowtype.Of(&column)
	if reason != "" {
		return nil, status.Errorf(status.Unsupported, "arrowio", "the rows cannot become a field: %s", reason)
	}
	c := &file{content: content, at: a, width: int64(field.RowBytes())}
	c.Facts = format.Metadata{Format: name, Schema: &arrowmeta.Schema{Fields: []arrowmeta.Field{column}}, Located: []bool{true}}
	c.each = max(unitBytes/c.width, 1)
	for first := int64(0); first < a.records; first += c.each {
		rows := min(c.each, a.records-first)
		c.Facts.Units = append(c.Facts.Units, resident.Extent{Offset: a.start + first*c.width, Length: rows * c.width})
	}
	c.Facts.Digest = sha256.Sum256(fmt.Appendf(nil, "%s %v %v %d %d", name, a.typ, a.shape, a.start, c.each))
	return c, nil
}

// column describes the field as a column of Arrow.
func (a array) column() arrowmeta.Field {
	item := arrowmeta.Field{Name: "item", Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8 * a.typ.Size(), Signed: a.typ < dtype.Uint8}}
	switch a.typ {
	case dtype.Float16, dtype.Float32, dtype.Float64:
		item.Type.Kind, item.Type.Signed = arrowmeta.Float, false
	case dtype.BFloat16:
		item.Type.Signed = false
		item.Metadata = arrowmeta.Metadata{{Key: arrowtype.DTypeKey, Value: a.typ.String()}}
	}
	for i := len(a.shape) - 1; i >= 0; i-- {
		item = arrowmeta.Field{Name: "item", Type: arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: a.shape[i], Children: []arrowmeta.Field{item}}}
	}
	item.Name = Field
	return item
}

// storable reports whether Arrow stores the elements of a type as an array does.
func storable(t dtype.Type) bool { return t > dtype.Bool && t < dtype.Complex64 }

// file is the contents of a file with one array.
type file struct {
	format.Plain
	content *resident.File
	at      array
	width   int64 // bytes of a row
	each    int64 // records of every unit but the last
}

// Scan implements format.Contents. It reads nothing.
func (c *file) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return unit{c.Facts.Units[i], c.width} }, visit)
}

// Verify implements format.Contents. Every bit pattern is a valid element, and the caller gathers
// all of them.
func (c *file) Verify(_ context.Context, _ []int, progress func(bytes int64)) error {
	progress(c.content.Size())
	return nil
}

// unit is a run of rows.
type unit struct {
	resident.Extent
	width int64
}

func (u unit) Rows() int64 { return u.Length / u.width }

func (unit) Nulls(int) buffers.Nulls { return buffers.Nulls{} }

func (unit) Encoding() string { return "" }

func (u unit) SetPositions(to *buffers.Column, batch, _ int) {
	to.Planes[len(to.Planes)-1].Data[batch] = u.Offset
}

func (unit) Uneven(int, *arrowtype.Field) (string, error) { return "", nil }
