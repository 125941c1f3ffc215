// Package formattest has a format of files for tests.
package formattest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Magic begins a file of the format Toy.
const Magic = "TOY1"

// Toy is a format that must be decoded, as Parquet is: after Magic, each unit is
// a byte with its number of rows, and one byte per row. Column number has the
// byte as an int32. Column pair has a list: the byte, and 1 more. Verify finds bytes of 255,
// which damage the file.
type Toy struct {
	Memory int64 // the estimate of a decoding; 0 for the bytes that it takes

	// The decodings of column number call these, unless they are nil. Decode is called first,
	// with the unit and the estimate. If it returns format.ErrEstimate, the next estimate is
	// format.MaxColumn. Values replaces the values.
	Decode func(unit int, estimate int64) error
	Values func(data []byte) []byte

	Weight int64 // the bytes that a decoded unit of column number counts in a cache; 0 for its bytes
}

// Recognize implements format.Format.
func (Toy) Recognize(head, _ []byte, _ int64) bool { return bytes.HasPrefix(head, []byte(Magic)) }

// Open implements format.Format.
func (f Toy) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
	data := make([]byte, content.Size())
	if err := content.ReadFull(ctx, data, 0); err != nil {
		return nil, err
	}
	number := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	item := arrowmeta.Field{Name: "item", Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8, Signed: true}}
	schema := &arrowmeta.Schema{Fields: []arrowmeta.Field{
		{Name: "number", Type: number}, {Name: "pair", Type: arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{item}}},
	}}
	c := &file{Toy: f, content: content, facts: format.Metadata{Format: "toy", Schema: schema, Located: []bool{true, true}}}
	for at := int64(len(Magic)); at < content.Size(); {
		e := resident.Extent{Offset: at + 1, Length: int64(data[at])}
		c.facts.Units = append(c.facts.Units, e)
		at = e.Offset + e.Length
	}
	c.facts.Digest = sha256.Sum256([]byte{byte(len(c.facts.Units))})
	return c, nil
}

type file struct {
	Toy
	content *resident.File
	facts   format.Metadata
	large   sync.Map // the units with a larger estimate
}

func (c *file) Metadata() *format.Metadata { return &c.facts }

func (c *file) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return unit(c.facts.Units[i].Length) }, visit)
}

func (c *file) Decoding(_ context.Context, i, column int, _ *arrowtype.Field) (format.Decoding, error) {
	d := format.Decoding{Memory: 12 * c.facts.Units[i].Length}
	if c.Memory > 0 {
		d.Memory = c.Memory
	}
	if _, large := c.large.Load(i); large {
		d.Memory = format.MaxColumn
	}
	d.Run = func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
		if column == 0 && c.Decode != nil {
			if err := c.Decode(i, d.Memory); err != nil {
				if errors.Is(err, format.ErrEstimate) {
					c.large.Store(i, true)
				}
				return nil, err
			}
		}
		return c.decode(ctx, i, column, lists)
	}
	return d, nil
}

func (c *file) Size(_ context.Context, i, _ int, _ *arrowtype.Field) (int64, error) {
	return 4 * c.facts.Units[i].Length, nil
}

func (c *file) decode(ctx context.Context, i, column int, lists bool) (*buffers.Decoded, error) {
	e := c.facts.Units[i]
	stored := make([]byte, e.Length)
	if err := c.content.ReadFull(ctx, stored, e.Offset); err != nil {
		return nil, err
	}
	var numbers, offsets, items []byte
	for k, b := range stored {
		numbers = binary.LittleEndian.AppendUint32(numbers, uint32(b))
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(2*k))
		items = append(items, b, b+1)
	}
	if column == 0 {
		if c.Values != nil {
			numbers = c.Values(numbers)
		}
		out := &buffers.Decoded{Levels: []buffers.Level{{Data: numbers, Length: e.Length}}, Bytes: int64(len(numbers))}
		if c.Weight > 0 {
			out.Bytes = c.Weight
		}
		return out, nil
	}
	offsets = binary.LittleEndian.AppendUint32(offsets, uint32(2*e.Length))
	if lists {
		items = nil
	}
	return &buffers.Decoded{Levels: []buffers.Level{{Data: offsets, Length: e.Length}, {Data: items, Length: 2 * e.Length}}, Bytes: int64(len(items))}, nil
}

func (c *file) Stored(i, _ int) []resident.Extent { return c.facts.Units[i : i+1] }

func (c *file) Dictionaries(_ context.Context, columns []int, _ []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	return make([][]*arrowtype.Dictionary, len(columns)), nil
}

func (c *file) Verify(ctx context.Context, _ []int, progress func(int64)) error {
	data := make([]byte, c.content.Size())
	if err := c.content.ReadFull(ctx, data, 0); err != nil {
		return err
	}
	progress(int64(len(data)))
	if bytes.Contains(data, []byte{255}) {
		return errors.New("a byte of 255")
	}
	return nil
}

// unit is the number of rows.
type unit int64

func (u unit) Rows() int64 { return int64(u) }

func (unit) Nulls(int) buffers.Nulls { return buffers.Nulls{} }

func (unit) Encoding() string { return "toy" }

func (u unit) SetPositions(to *buffers.Column, batch, _ int) {
	for n := range to.Planes {
		if length := to.Planes[n].Length; length != nil {
			length[batch] = 2 * int64(u)
		}
	}
}

func (unit) Uneven(int, *arrowtype.Field) (string, error) { return "", nil }
