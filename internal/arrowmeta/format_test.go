package arrowmeta_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// TestUnknownType puts a column of an unknown type between two others. It is
// listed, the first is located, and the last is not.
func TestUnknownType(t *testing.T) {
	schema := schemaOf(int32Field("a"), field("new", 99, fields{4: int32(1)}, int32Field("x")), int32Field("b"))
	batch := batchOf(2, numbers(2, 2, 0, 2, 0, 2, 0, 2, 0), numbers(2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8))
	data := streamOf(schema, 16, batch)
	if err := examine(t, data); err != nil {
		t.Fatal(err)
	}
	f, _ := read(data)
	var got []string
	for i := range f.Columns {
		c := &f.Columns[i]
		got = append(got, fmt.Sprintf("%s %s %v", c.Field.Name, c.Field.TypeString(), c.Located))
	}
	want := []string{"a int32 true", "new unknown type 99<int32> false", "b int32 false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	short := batchOf(2, numbers(2), numbers(2))
	if err := examine(t, streamOf(schema, 16, short)); err == nil {
		t.Error("a batch without the first column's node was accepted")
	}
}

// TestUnknownParameters: an unknown width or unit affects only its own column.
func TestUnknownParameters(t *testing.T) {
	columns := []struct {
		f    fields
		want string
	}{
		{field("x", 3, fields{4: int16(7)}), "float0"},
		{field("x", 2, fields{4: int32(24)}), "uint24"},
		{field("x", 9, fields{4: int16(9), 6: int32(64)}), "time64[?]"},
		{field("x", 11, fields{4: int16(9)}), "?_interval"},
		{field("x", 8, fields{4: int16(-1)}), "date0[?]"},
	}
	for _, c := range columns {
		f, err := read(streamOf(schemaOf(c.f), 0))
		if err != nil {
			t.Fatal(err)
		}
		typ := &f.Schema.Fields[0].Type
		if got := typ.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if d, ok := typ.DType(); ok {
			t.Errorf("%s has element type %v", c.want, d)
		}
	}
}

func TestDType(t *testing.T) {
	f, err := read(load(t, "temporal.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]dtype.Type{
		"day": dtype.Int32, "ms": dtype.Int64, "t32": dtype.Int32, "t64": dtype.Int64, "at": dtype.Int64,
		"local": dtype.Int64, "span": dtype.Int64, // months with days, and decimals, cannot be array elements
	}
	for i := range f.Schema.Fields {
		field := &f.Schema.Fields[i]
		got, ok := field.Type.DType()
		if got != want[field.Name] || ok != got.Valid() {
			t.Errorf("%s: %v, want %v", field.Name, got, want[field.Name])
		}
	}
	for want, typ := range map[dtype.Type]arrowmeta.Type{
		dtype.Bool:    {Kind: arrowmeta.Bool, BitWidth: 1},
		dtype.Uint8:   {Kind: arrowmeta.Int, BitWidth: 8},
		dtype.Int16:   {Kind: arrowmeta.Int, BitWidth: 16, Signed: true},
		dtype.Float16: {Kind: arrowmeta.Float, BitWidth: 16},
		dtype.Int32:   {Kind: arrowmeta.Interval, BitWidth: 32, Unit: arrowmeta.YearMonth},
		dtype.Invalid: {Kind: arrowmeta.String},
	} {
		if got, _ := typ.DType(); got != want {
			t.Errorf("%s: %v, want %v", typ.String(), got, want)
		}
	}
}

func TestBigEndian(t *testing.T) {
	f, err := read(streamOf(with(columnsAB, 4, int16(1)), 0))
	if err != nil || !f.Schema.BigEndian {
		t.Errorf("BigEndian not seen: %v", err)
	}
}

func TestDictionaries(t *testing.T) {
	for name, want := range map[string][]string{
		"dictionary.arrow": {"0 false 2", "1 false 2"},
		"delta.stream":     {"0 false 2", "1 false 2", "0 true 1"},
		"replaced.stream":  {"0 false 1", "1 false 2", "0 false 1"},
	} {
		data := load(t, name)
		f, err := read(data)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = f.ScanDictionaries(bytes.NewReader(data), func(_ int, d *arrowmeta.DictionaryBatch) error {
			got = append(got, fmt.Sprint(d.ID, d.Delta, d.Length))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestBatch(t *testing.T) {
	data := load(t, "primitive.arrow")
	f, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(data)
	if b, err := f.Batch(r, 2); err != nil || b.Length != 9 {
		t.Errorf("batch 2: %+v, %v", b, err)
	}
	_, err = f.Batch(r, 3)
	if want := "arrowmeta: record batches 3 to 4 of 3"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	stop := errors.New("stop")
	if err := f.Scan(r, 0, 3, func(int, *arrowmeta.RecordBatch) error { return stop }); err != stop {
		t.Errorf("got %v, want the visitor's error", err)
	}
}

// TestDigest: equal metadata have equal digests, whatever is in the bodies.
func TestDigest(t *testing.T) {
	for _, name := range []string{"primitive.arrow", "primitive.stream"} {
		data := load(t, name)
		f, _ := read(data)
		other := bytes.Clone(data)
		other[f.Batches[0].Body()]++
		digest := func(data []byte) string {
			parse := arrowmeta.ReadFile
			if f.Stream {
				parse = arrowmeta.ReadStream
			}
			h := sha256.New()
			if _, err := parse(bytes.NewReader(data), int64(len(data)), h); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return string(h.Sum(nil))
		}
		if digest(other) != digest(data) {
			t.Errorf("%s: the digest depends on values", name)
		}
		if digest(load(t, "legacy."+name[len("primitive."):])) == digest(data) {
			t.Errorf("%s: different metadata with one digest", name)
		}
	}
}

// failing is a file. Its reads beyond limit fail with err.
type failing struct {
	io.ReaderAt
	limit int64
	err   error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.limit {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestReaderFails(t *testing.T) {
	data := load(t, "primitive.arrow")
	size := int64(len(data))
	broken := errors.New("disk on fire")
	_, err := arrowmeta.Read(failing{bytes.NewReader(data), size - 1, broken}, size)
	if status.CodeOf(err) != status.IO || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	// A file that has shrunk since its size was taken.
	f, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(data[:f.Batches[2].Offset])
	err = f.Scan(r, 0, 3, func(int, *arrowmeta.RecordBatch) error { return nil })
	want := fmt.Sprintf("arrowmeta: record batch 2 at byte %d: the data end here; the data are damaged or cut short; write them again", f.Batches[2].Offset)
	if err == nil || err.Error() != want || status.CodeOf(err) != status.DataLoss {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestMinBytes(t *testing.T) {
	c := func(kind arrowmeta.Kind, name string) *arrowmeta.Column {
		f, err := read(load(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Columns {
			if f.Columns[i].Stored().Kind == kind {
				return &f.Columns[i]
			}
		}
		t.Fatalf("%s has no %v", name, kind)
		return nil
	}
	boolean := c(arrowmeta.Bool, "primitive.arrow")
	text := c(arrowmeta.String, "text.arrow")
	var got []int64
	for _, at := range []struct {
		c      *arrowmeta.Column
		buffer int
		n      int64
	}{{boolean, 0, 9}, {boolean, 1, 8}, {boolean, 1, 0}, {text, 1, 3}, {text, 2, 3}, {text, 7, 3}} {
		n, ok := at.c.MinBytes(at.buffer, at.n)
		if !ok {
			t.Errorf("no size: %+v", at)
		}
		got = append(got, n)
	}
	if want := []int64{2, 1, 0, 16, 0, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := text.MinBytes(1, 1<<62); ok {
		t.Error("an overflow was not seen")
	}
}

func TestCompression(t *testing.T) {
	for name, want := range map[string]string{"fixed.arrow": "uncompressed", "lz4.arrow": "lz4", "zstd.stream": "zstd"} {
		data := load(t, name)
		f, err := read(data)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := f.Batch(bytes.NewReader(data), 0); err != nil || b.Compression.String() != want {
			t.Errorf("%s: %v, %v", name, b.Compression, err)
		}
	}
}
