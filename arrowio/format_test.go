package arrowio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// toy is a format that must be decoded, as Parquet is: after "TOY1", each unit is
// a byte with its number of rows, and one byte per row. Column number has the
// byte as an int32. Column pair has a list: the byte, and 1 more.
type toy struct{}

const toyMagic = "TOY1"

func (toy) Recognize(head []byte, _ int64) bool { return bytes.HasPrefix(head, []byte(toyMagic)) }

func (toy) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
	data := make([]byte, content.Size())
	if err := content.ReadFull(ctx, data, 0); err != nil {
		return nil, err
	}
	number := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	item := arrowmeta.Field{Name: "item", Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8, Signed: true}}
	schema := &arrowmeta.Schema{Fields: []arrowmeta.Field{
		{Name: "number", Type: number}, {Name: "pair", Type: arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{item}}},
	}}
	c := &toyFile{content: content, facts: format.Metadata{Format: "toy", Schema: schema, Located: []bool{true, true}}}
	for at := int64(len(toyMagic)); at < content.Size(); {
		e := resident.Extent{Offset: at + 1, Length: int64(data[at])}
		c.facts.Units = append(c.facts.Units, e)
		at = e.Offset + e.Length
	}
	c.facts.Digest = sha256.Sum256([]byte{byte(len(c.facts.Units))})
	return c, nil
}

type toyFile struct {
	content *resident.File
	facts   format.Metadata
}

func (c *toyFile) Metadata() *format.Metadata { return &c.facts }

func (c *toyFile) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	for i := first; i < last; i++ {
		if err := visit(i, toyUnit(c.facts.Units[i].Length)); err != nil {
			return err
		}
	}
	return nil
}

func (c *toyFile) Decoding(_ context.Context, i, column int, _ *arrowtype.Field) (format.Decoding, error) {
	run := func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
		return c.decode(ctx, i, column, lists)
	}
	return format.Decoding{Memory: 12 * c.facts.Units[i].Length, Run: run}, nil
}

func (c *toyFile) Size(_ context.Context, i, _ int, _ *arrowtype.Field) (int64, error) {
	return 4 * c.facts.Units[i].Length, nil
}

func (c *toyFile) decode(ctx context.Context, i, column int, lists bool) (*buffers.Decoded, error) {
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
		return &buffers.Decoded{Levels: []buffers.Level{{Data: numbers, Length: e.Length}}, Bytes: int64(len(numbers))}, nil
	}
	offsets = binary.LittleEndian.AppendUint32(offsets, uint32(2*e.Length))
	if lists {
		items = nil
	}
	return &buffers.Decoded{Levels: []buffers.Level{{Data: offsets, Length: e.Length}, {Data: items, Length: 2 * e.Length}}, Bytes: int64(len(items))}, nil
}

func (c *toyFile) Dictionaries(_ context.Context, columns []int, _ []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	return make([][]*arrowtype.Dictionary, len(columns)), nil
}

// Verify finds bytes of 255, which damage the file.
func (c *toyFile) Verify(ctx context.Context, _ []int, progress func(int64)) error {
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

// toyUnit is the number of rows.
type toyUnit int64

func (u toyUnit) Rows() int64 { return int64(u) }

func (toyUnit) Nulls(int) buffers.Nulls { return buffers.Nulls{} }

func (toyUnit) Encoding() string { return "toy" }

func (u toyUnit) SetPositions(to *buffers.Column, batch, _ int) {
	for n := range to.Planes {
		if length := to.Planes[n].Length; length != nil {
			length[batch] = 2 * int64(u)
		}
	}
}

func (toyUnit) Uneven(int, *arrowtype.Field) (string, error) { return "", nil }

// TestAddAFormat: a format that is added to the list is opened, gathered, hashed
// and verified as the others are.
func TestAddAFormat(t *testing.T) {
	formats = append(slices.Clone(formats), toy{})
	t.Cleanup(func() { formats = formats[:len(formats)-1] })
	memory := blobtest.Memory{"a.toy": []byte(toyMagic + "\x03\x01\x02\x03\x00\x02\x08\x09"), "b.toy": []byte(toyMagic + "\x01\x07"), "bad.toy": []byte(toyMagic + "\x01\xff")}
	open := func(names ...string) *Dataset {
		d, err := OpenFiles(t.Context(), names, Options{Opener: memory})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	sourcetest.Run(t, func(*testing.T) source.Source { return open("a.toy", "b.toy") })
	d := open("a.toy", "b.toy")
	defer d.Close()
	if want := (FileInfo{Path: "a.toy", Format: "toy", Records: 5, Batches: 3, LargestBatch: 3, Bytes: 12, Compression: "toy"}); d.Files()[0] != want {
		t.Errorf("got %+v, want %+v", d.Files()[0], want)
	}
	var rows []byte
	for i, field := range d.Schema().Fields {
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(i)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		dst := make([]byte, 3*field.RowBytes())
		if err := g.Gather(t.Context(), source.Draw{}, []int64{5, 0, 4}, []source.Job{{Rows: [2]int{0, 3}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, dst...)
	}
	if want := []byte{7, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7, 8, 1, 2, 9, 10}; !bytes.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	if _, err := d.Verify(t.Context(), VerifyOptions{Hash: true}); err != nil {
		t.Error(err)
	}
	bad := open("bad.toy")
	defer bad.Close()
	if _, err := bad.Verify(t.Context(), VerifyOptions{}); status.CodeOf(err) != status.IO || err.Error() != "arrowio: bad.toy: a byte of 255" {
		t.Errorf("got %v", err)
	}
}
