package arrowio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/endian"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// corruptible is a file written by Arrow's own library. A test then changes single
// values of it.
type corruptible struct {
	t    *testing.T
	path string
	data []byte
}

// write makes a file of one column x with the JSON values.
func write(t *testing.T, typ arrow.DataType, values string, options ...ipc.Option) *corruptible {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ}}, nil)
	column, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	return writeRecords(t, schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{column}, -1)}, options...)
}

func writeRecords(t *testing.T, schema *arrow.Schema, records []arrow.Record, options ...ipc.Option) *corruptible {
	t.Helper()
	l := &corruptible{t: t, path: temp(t, "x.arrow")}
	writeIPC(t, l.path, false, schema, records, options...)
	var err error
	if l.data, err = os.ReadFile(l.path); err != nil {
		t.Fatal(err)
	}
	return l
}

// length returns the length of one of column x's buffers in the first batch.
func (l *corruptible) length(buffer int) int {
	_, n := l.buffer(buffer)
	return n
}

// buffer returns position and length of a buffer in the file.
func (l *corruptible) buffer(buffer int) (at, length int) {
	return l.bufferOf(buffer, func(c *arrowmeta.Column) *arrowmeta.Column { return c })
}

// bufferOf returns position and length of a buffer of a column, or of its child.
func (l *corruptible) bufferOf(buffer int, column func(c *arrowmeta.Column) *arrowmeta.Column) (at, length int) {
	l.t.Helper()
	f, err := arrowmeta.Read(bytes.NewReader(l.data), int64(len(l.data)))
	if err != nil {
		l.t.Fatal(err)
	}
	b, err := f.Batch(bytes.NewReader(l.data), 0)
	if err != nil {
		l.t.Fatal(err)
	}
	r := b.Buffers(column(&f.Columns[0]))[buffer]
	return int(f.Batches[0].Body() + r.Offset), int(r.Length)
}

// put writes a number over the bytes at offset in one of column x's buffers in
// the first record batch.
func (l *corruptible) put(buffer, offset int, number any) {
	l.t.Helper()
	at, _ := l.buffer(buffer)
	l.write(at+offset, number)
}

// putChild writes a number over the bytes at offset in the first buffer of values of the
// child of column x.
func (l *corruptible) putChild(offset int, number any) {
	l.t.Helper()
	at, _ := l.bufferOf(1, func(c *arrowmeta.Column) *arrowmeta.Column { return &c.Children[0] })
	l.write(at+offset, number)
}

func (l *corruptible) write(at int, number any) {
	l.t.Helper()
	if _, err := binary.Encode(l.data[at:], binary.LittleEndian, number); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(l.path, l.data, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// gather opens the file with rows of 3 and gathers one record of field x.
func (l *corruptible) gather(io string, record int64) error {
	l.t.Helper()
	ds, err := arrowio.OpenFiles(l.t.Context(), []string{l.path}, arrowio.Options{IO: io, Shapes: map[string][]int{"x": {3}}})
	if err != nil {
		return err
	}
	defer ds.Close()
	fields := ds.Schema().Fields
	if len(fields) != 1 {
		l.t.Fatalf("%+v", ds.Schema())
	}
	_, err = gatherField(ds, 0, fields[0], []int64{record})
	return err
}

// TestListOffsetsAreChecked: if the offsets of a list lie outside of its elements,
// or its length differs from the field's rows, only its record is an error.
func TestListOffsetsAreChecked(t *testing.T) {
	for _, large := range []bool{false, true} {
		typ, width := arrow.DataType(arrow.ListOf(arrow.PrimitiveTypes.Int32)), 4
		number := func(n int64) any { return int32(n) }
		if large {
			typ, width = arrow.LargeListOf(arrow.PrimitiveTypes.Int32), 8
			number = func(n int64) any { return n }
		}
		for _, offset := range []int64{100, -1, -3, 2, 4, 1 << 30, -1 << 31} {
			for _, io := range []string{"map", "read"} {
				l := write(t, typ, `[[1,2,3],[4,5,6],[7,8,9]]`)
				l.put(1, 2*width, number(offset)) // the end of list 1, the start of list 2
				if err := l.gather(io, 0); err != nil {
					t.Errorf("%s: record 0 is whole: %v", io, err)
				}
				for _, record := range []int64{1, 2} {
					named(t, l.path, l.gather(io, record))
				}
			}
		}
	}
}

// TestListsBeyondTheirElements: offsets that agree with each other but not with
// the number of elements.
func TestListsBeyondTheirElements(t *testing.T) {
	for _, start := range []int32{6, 7, 1 << 20, -9} {
		l := write(t, arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1,2,3],[4,5,6],[7,8,9]]`)
		l.put(1, 2*4, start)
		l.put(1, 3*4, start+3)
		err := l.gather("map", 2)
		if start == 6 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		named(t, l.path, err)
	}
}

// replace writes numbers over others, which occur once in the file.
func (l *corruptible) replace(from, to []int32) {
	l.t.Helper()
	old, err := binary.Append(nil, binary.LittleEndian, from)
	if err != nil {
		l.t.Fatal(err)
	}
	at := bytes.Index(l.data, old)
	if at < 0 || bytes.Count(l.data, old) != 1 {
		l.t.Fatalf("%v occurs %d times in the file", from, bytes.Count(l.data, old))
	}
	if _, err := binary.Encode(l.data[at:], binary.LittleEndian, to); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(l.path, l.data, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// TestListsBesideNulls: a row with a null among its lists is built list by list,
// and the offsets of each are checked.
func TestListsBesideNulls(t *testing.T) {
	typ := arrow.FixedSizeListOf(2, arrow.ListOf(arrow.PrimitiveTypes.Int32))
	for _, start := range []int32{7, 1 << 29, -9} {
		for _, io := range []string{"map", "read"} {
			l := write(t, typ, `[[[1,2,3],null],[[4,5,6],[7,8,9]]]`)
			l.replace([]int32{0, 3, 3, 6, 9}, []int32{start, start + 3, 3, 6, 9})
			ds, err := arrowio.OpenFiles(t.Context(), []string{l.path}, arrowio.Options{IO: io, Shapes: map[string][]int{"x": {2, 3}}})
			if err != nil {
				t.Fatal(err)
			}
			f := ds.Schema().Fields[0]
			if _, err := gatherField(ds, 0, f, []int64{1}); err != nil {
				t.Errorf("record 1 is whole: %v", err)
			}
			_, err = gatherField(ds, 0, f, []int64{0})
			named(t, l.path, err)
			ds.Close()
		}
	}
}

// TestShapeFromDamagedLists: the lists that a shape is taken from end outside of
// their elements, or of the file.
func TestShapeFromDamagedLists(t *testing.T) {
	for _, c := range []struct {
		start int32
		want  string
	}{
		{1 << 28, "record batch 0: its lists go from element 268435456 to 268435457 of 2"},
		{-1 << 28, "record batch 0: its lists go from element -268435456 to -268435455 of 2"},
	} {
		l := write(t, arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32)), `[[[1,2]],[[3,4]]]`)
		l.put(1, 0, []int32{c.start, c.start + 1})
		_, err := arrowio.Open(l.path)
		named(t, l.path, err)
		if want := "arrowio: " + l.path + `: field "x": ` + c.want + "; the data are damaged; write them again"; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestDictionaryIndicesAreChecked(t *testing.T) {
	plain := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.PrimitiveTypes.Float64}
	for _, index := range []int16{2, -1, 99, -1 << 15} {
		l := write(t, plain, `[0.5, 1.5, 0.5]`)
		l.put(1, 2, index)
		ds, err := arrowio.Open(l.path)
		if err != nil {
			t.Fatal(err)
		}
		f := ds.Schema().Fields
		if len(f) != 1 {
			t.Fatalf("%+v", ds.Schema())
		}
		if _, err := gatherField(ds, 0, f[0], []int64{0, 2}); err != nil {
			t.Error(err)
		}
		_, err = gatherField(ds, 0, f[0], []int64{1})
		named(t, l.path, err)
		ds.Close()
	}
}

// TestCompressedSizesAreChecked: the size before each compressed buffer must be
// the size that the rows need.
func TestCompressedSizesAreChecked(t *testing.T) {
	values := "[" + strings.Repeat("7,", 999) + "7]"
	for name, codec := range map[string]ipc.Option{"lz4": ipc.WithLZ4(), "zstd": ipc.WithZstd()} {
		for _, size := range []int64{0, -1, -2, 8, 7999, 8001, 1 << 20, 1 << 40, 1<<63 - 1, -1 << 63} {
			l := write(t, arrow.PrimitiveTypes.Int64, values, codec)
			l.put(1, 0, size)
			before := allocated()
			ds, err := arrowio.Open(l.path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = gatherField(ds, 0, ds.Schema().Fields[0], []int64{0, 999})
			ds.Close()
			if grown := allocated() - before; grown > 64<<20 {
				t.Errorf("%s, size %d: %d bytes allocated", name, size, grown)
			}
			if err == nil {
				t.Errorf("%s: size %d was accepted", name, size)
				continue
			}
			named(t, l.path, err)
			want := fmt.Sprintf("a buffer of %d bytes for 1000 values, which need 8000", size)
			if far := size < 8000 || size > 16000; far && size != -1 && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		}
	}
}

// TestDictionarySizesAreChecked is TestCompressedSizesAreChecked for the values of
// a dictionary.
func TestDictionarySizesAreChecked(t *testing.T) {
	plain := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.PrimitiveTypes.Float64}
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprint(i))
	}
	for _, size := range []int64{0, -1, -2, 8, 7999, 1 << 40} {
		l := write(t, plain, "["+strings.Join(values, ",")+"]", ipc.WithLZ4())
		meta, err := arrowmeta.Read(bytes.NewReader(l.data), int64(len(l.data)))
		if err != nil {
			t.Fatal(err)
		}
		err = meta.ScanDictionaries(bytes.NewReader(l.data), func(i int, b *arrowmeta.DictionaryBatch) error {
			at := meta.Dictionaries[i].Body() + b.Buffers(b.Values)[1].Offset
			binary.LittleEndian.PutUint64(l.data[at:], uint64(size))
			return os.WriteFile(l.path, l.data, 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = gatherAll(t, l.path, "read")
		named(t, l.path, err)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestCompressedBytesAreChecked changes the compressed bytes themselves.
func TestCompressedBytesAreChecked(t *testing.T) {
	values := "[" + strings.Repeat("7,8,1000,", 333) + "7]"
	for _, codec := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
		for at := 8; at < 40; at++ {
			l := write(t, arrow.PrimitiveTypes.Int64, values, codec)
			l.put(1, at, byte(0xee))
			ds, err := arrowio.Open(l.path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = gatherField(ds, 0, ds.Schema().Fields[0], []int64{0}); err != nil {
				named(t, l.path, err) // a change that only makes other values is not noticed
			}
			ds.Close()
		}
	}
}

// TestZstdWindow: a frame of 8,000 bytes may ask for a window of gigabytes.
func TestZstdWindow(t *testing.T) {
	for _, window := range []byte{0x00, 0x50, 0x80, 0x98, 0xa0, 0xa8, 0xf8} {
		l := write(t, arrow.PrimitiveTypes.Int64, "["+strings.Repeat("7,8,1000,", 333)+"7]", ipc.WithZstd())
		frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, window}
		frame = append(frame, 0x03|8000<<3&0xff, 8000>>5&0xff, 8000>>13, 9) // last block, 8,000 times 9
		frame = append(frame, 0x50, 0x2a, 0x4d, 0x18)                       // skip the rest
		room := l.length(1) - 8 - len(frame) - 4
		frame = binary.LittleEndian.AppendUint32(frame, uint32(room))
		l.put(1, 8, append(frame, make([]byte, room)...))
		before := allocated()
		_, err := gatherAll(t, l.path, "read")
		if grown := allocated() - before; grown > 128<<20 {
			t.Errorf("window %#x: %d bytes allocated", window, grown)
		}
		if err != nil {
			named(t, l.path, err)
		}
	}
}

// TestHugeShapes: a type may describe rows that are larger than any address space.
func TestHugeShapes(t *testing.T) {
	typ := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for range 3 {
		typ = arrow.FixedSizeListOf(1<<31-1, typ)
	}
	for _, typ := range []arrow.DataType{typ, arrow.FixedSizeListOf(1<<31-1, arrow.PrimitiveTypes.Int64)} {
		l := write(t, typ, `[]`)
		ds, err := arrowio.Open(l.path)
		if err != nil {
			t.Fatal(err)
		}
		if s := ds.Schema(); len(s.Fields) != 0 || len(s.Skipped) != 1 || s.Skipped[0].Reason == "" {
			t.Errorf("%+v", s)
		}
		ds.Close()
	}
}

// TestRowsWithoutBytes: nulls take no bytes, so a small file may claim any number
// of rows. Their sum is bounded.
func TestRowsWithoutBytes(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.Null, Nullable: true}}, nil)
	record := func(rows int) arrow.Record {
		return array.NewRecord(schema, []arrow.Array{array.NewNull(rows)}, int64(rows))
	}
	l := writeRecords(t, schema, []arrow.Record{record(1 << 39), record(1 << 39)})
	ds, err := arrowio.Open(l.path)
	if err != nil || ds.Len() != 1<<40 {
		t.Fatalf("2^40 rows of nulls: %v", err)
	}
	ds.Close()
	l = writeRecords(t, schema, []arrow.Record{record(1 << 40), record(1)})
	_, err = arrowio.Open(l.path)
	named(t, l.path, err)
}

func TestBigEndian(t *testing.T) {
	schema := arrow.NewSchemaWithEndian([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int32}}, nil, endian.BigEndian)
	b := array.NewInt32Builder(memory.DefaultAllocator)
	b.Append(1)
	l := writeRecords(t, schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{b.NewArray()}, 1)})
	_, err := arrowio.Open(l.path)
	named(t, l.path, err)
	if status.CodeOf(err) != status.Unsupported {
		t.Error(err)
	}
}

// TestOtherRowsAfterOpen overwrites a file with one of the same size, but with
// another number of rows in its record batch.
func TestOtherRowsAfterOpen(t *testing.T) {
	l, other := write(t, arrow.PrimitiveTypes.Int8, "[1,2,3]"), write(t, arrow.PrimitiveTypes.Int8, "[1,2,3,4,5]")
	if len(l.data) != len(other.data) {
		t.Fatalf("%d and %d bytes: the test checks nothing", len(l.data), len(other.data))
	}
	ds, err := arrowio.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if err := os.WriteFile(l.path, other.data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = gatherField(ds, 0, ds.Schema().Fields[0], []int64{0})
	if want := "arrowio: " + l.path + ": record batch 0 has 5 rows, but had 3 when the file was opened; do not write to files that are open"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestRewrittenAfterOpen overwrites an open file with another one, which is shorter
// or has the same size but other rows. The result may be an error or other values,
// but nothing outside of the file is read.
func TestRewrittenAfterOpen(t *testing.T) {
	for _, io := range []string{"map", "read"} {
		l := write(t, arrow.PrimitiveTypes.Int64, "["+strings.Repeat("7,", 9999)+"7]")
		other := write(t, arrow.PrimitiveTypes.Int64, "[1,2,3]")
		for name, data := range map[string][]byte{"shorter": other.data, "empty": nil, "zeros": make([]byte, len(l.data))} {
			if err := os.WriteFile(l.path, l.data, 0o600); err != nil {
				t.Fatal(err)
			}
			ds, err := arrowio.OpenFiles(t.Context(), []string{l.path}, arrowio.Options{IO: io})
			if err != nil {
				t.Fatal(err)
			}
			f := ds.Schema().Fields[0]
			if err := os.WriteFile(l.path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = gatherField(ds, 0, f, []int64{0, 9999, 5000})
			if err == nil && name != "zeros" {
				t.Errorf("%s, %s: rows were gathered", io, name)
			}
			if err != nil {
				named(t, l.path, err)
			}
			if err := ds.Close(); err != nil {
				t.Errorf("%s, %s: Close: %v", io, name, err)
			}
		}
	}
}
