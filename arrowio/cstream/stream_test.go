package cstream

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/cdata"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/memory/mallocator"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 takes the time")

// random gives a generator whose seed is printed if the test fails.
func random(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("run again with -args -seed=%d", s)
	return rand.New(rand.NewPCG(s, 1))
}

// written is one column of the test data: how Arrow's builder gets row i, and
// what a gather of that row must give.
type written struct {
	name   string
	typ    arrow.DataType
	meta   arrow.Metadata
	shape  []int
	dtype  dtype.Type
	append func(b array.Builder, i int)
	want   func(i int) []byte
	null   func(i int) bool
}

func le[T any](values ...T) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, values)
	return b.Bytes()
}

func fsl(n int32, t arrow.DataType) arrow.DataType { return arrow.FixedSizeListOfNonNullable(n, t) }

var none = func(int) bool { return false }

// columns covers every way of storing rows.
var columns = []written{
	{name: "int32", typ: arrow.PrimitiveTypes.Int32, dtype: dtype.Int32, null: none,
		append: func(b array.Builder, i int) { b.(*array.Int32Builder).Append(int32(i * 3)) },
		want:   func(i int) []byte { return le(int32(i * 3)) }},
	{name: "bool", typ: arrow.FixedWidthTypes.Boolean, dtype: dtype.Bool, null: none,
		append: func(b array.Builder, i int) { b.(*array.BooleanBuilder).Append(i%3 == 0) },
		want:   func(i int) []byte { return le(i%3 == 0) }},
	{name: "half", typ: arrow.FixedWidthTypes.Float16, dtype: dtype.Float16, null: none,
		append: func(b array.Builder, i int) {
			b.(*array.Float16Builder).Append(float16.FromBits(uint16(i)))
		},
		want: func(i int) []byte { return le(uint16(i)) }},
	{name: "time", typ: arrow.FixedWidthTypes.Timestamp_us, dtype: dtype.Int64, null: none,
		append: func(b array.Builder, i int) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(i) << 40) },
		want:   func(i int) []byte { return le(int64(i) << 40) }},
	{name: "bytes", typ: &arrow.FixedSizeBinaryType{ByteWidth: 5}, dtype: dtype.Uint8, shape: []int{5}, null: none,
		append: func(b array.Builder, i int) { b.(*array.FixedSizeBinaryBuilder).Append(rowBytes(i, 5)) },
		want:   func(i int) []byte { return rowBytes(i, 5) }},
	{name: "matrix", typ: fsl(2, fsl(3, arrow.PrimitiveTypes.Float32)), dtype: dtype.Float32, shape: []int{2, 3}, null: none,
		append: func(b array.Builder, i int) {
			rows := b.(*array.FixedSizeListBuilder)
			rows.Append(true)
			inner := rows.ValueBuilder().(*array.FixedSizeListBuilder)
			for y := range 2 {
				inner.Append(true)
				for x := range 3 {
					inner.ValueBuilder().(*array.Float32Builder).Append(float32(i*10 + y*3 + x))
				}
			}
		},
		want: func(i int) []byte {
			f := float32(i * 10)
			return le(f, f+1, f+2, f+3, f+4, f+5)
		}},
	{name: "bits", typ: fsl(3, arrow.FixedWidthTypes.Boolean), dtype: dtype.Bool, shape: []int{3}, null: none,
		append: func(b array.Builder, i int) {
			rows := b.(*array.FixedSizeListBuilder)
			rows.Append(true)
			for k := range 3 {
				rows.ValueBuilder().(*array.BooleanBuilder).Append(i>>k&1 == 1)
			}
		},
		want: func(i int) []byte { return le(i&1 == 1, i>>1&1 == 1, i>>2&1 == 1) }},
	{name: "tensor", typ: fsl(6, arrow.PrimitiveTypes.Int16), dtype: dtype.Int16, shape: []int{3, 2}, null: none,
		meta: arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"},
			[]string{"arrow.fixed_shape_tensor", `{"shape":[3,2]}`}),
		append: func(b array.Builder, i int) {
			rows := b.(*array.FixedSizeListBuilder)
			rows.Append(true)
			for k := range 6 {
				rows.ValueBuilder().(*array.Int16Builder).Append(int16(i + k))
			}
		},
		want: func(i int) []byte {
			return le(int16(i), int16(i+1), int16(i+2), int16(i+3), int16(i+4), int16(i+5))
		}},
}

// hardColumns need more than addresses: offsets, indices, validity.
var hardColumns = []written{
	{name: "list", typ: arrow.ListOf(arrow.PrimitiveTypes.Int64), dtype: dtype.Int64, shape: []int{2}, null: none,
		append: func(b array.Builder, i int) {
			rows := b.(*array.ListBuilder)
			rows.Append(true)
			rows.ValueBuilder().(*array.Int64Builder).AppendValues([]int64{int64(i), -int64(i)}, nil)
		},
		want: func(i int) []byte { return le(int64(i), -int64(i)) }},
	{name: "nested", typ: arrow.LargeListOf(arrow.ListOf(arrow.PrimitiveTypes.Uint8)), dtype: dtype.Uint8, shape: []int{2, 3}, null: none,
		append: func(b array.Builder, i int) {
			rows := b.(*array.LargeListBuilder)
			rows.Append(true)
			inner := rows.ValueBuilder().(*array.ListBuilder)
			for y := range 2 {
				inner.Append(true)
				inner.ValueBuilder().(*array.Uint8Builder).AppendValues(rowBytes(i+y, 3), nil)
			}
		},
		want: func(i int) []byte { return append(rowBytes(i, 3), rowBytes(i+1, 3)...) }},
	{name: "coded", typ: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float64}, dtype: dtype.Float64, null: none,
		append: func(b array.Builder, i int) { b.(*array.Float64DictionaryBuilder).Append(float64(i%7) / 2) },
		want:   func(i int) []byte { return le(float64(i%7) / 2) }},
	{name: "maybe", typ: arrow.PrimitiveTypes.Float32, dtype: dtype.Float32, null: func(i int) bool { return i%5 == 2 },
		append: func(b array.Builder, i int) {
			if i%5 == 2 {
				b.AppendNull()
				return
			}
			b.(*array.Float32Builder).Append(float32(i))
		},
		want: func(i int) []byte {
			if i%5 == 2 {
				return le(float32(-1))
			}
			return le(float32(i))
		}},
	{name: "holes", typ: arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Boolean), dtype: dtype.Bool, shape: []int{2}, null: func(i int) bool { return i%4 != 0 },
		append: func(b array.Builder, i int) {
			rows := b.(*array.FixedSizeListBuilder)
			bits := rows.ValueBuilder().(*array.BooleanBuilder)
			rows.Append(i%4 != 3)
			bits.Append(i%4 == 0)
			if i%4 == 1 {
				bits.AppendNull()
				return
			}
			bits.Append(true)
		},
		want: func(i int) []byte {
			return [][]byte{{1, 1}, {0, 1}, {0, 1}, {1, 1}}[i%4]
		}},
}

func rowBytes(i, n int) []byte {
	out := make([]byte, n)
	for k := range out {
		out[k] = byte(i*31 + k*7)
	}
	return out
}

// export builds batches of the columns whose rows are numbered, and gives them
// as a C stream. Each batch is [from, to) of a longer array.
func export(t *testing.T, columns []written, batches [][2]int) *cdata.CArrowArrayStream {
	t.Helper()
	alloc := mallocator.NewMallocator()
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.name, Type: c.typ, Metadata: c.meta, Nullable: true}
	}
	schema := arrow.NewSchema(fields, nil)
	var records []arrow.Record
	for _, b := range batches {
		rb := array.NewRecordBuilder(alloc, schema)
		for i := range b[1] {
			for k, c := range columns {
				c.append(rb.Field(k), i)
			}
		}
		whole := rb.NewRecord()
		rb.Release()
		records = append(records, whole.NewSlice(int64(b[0]), int64(b[1])))
		whole.Release()
	}
	reader, err := array.NewRecordReader(schema, records)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		r.Release()
	}
	out := new(cdata.CArrowArrayStream)
	cdata.ExportRecordReader(reader, out)
	reader.Release()
	return out
}

func testColumns(t *testing.T, columns []written) {
	rng := random(t)
	for range 30 {
		var batches [][2]int
		var rows []int // the number of each record's row
		for range rng.IntN(4) + 1 {
			to := rng.IntN(40)
			from := rng.IntN(to + 1)
			batches = append(batches, [2]int{from, to})
			for i := from; i < to; i++ {
				rows = append(rows, i)
			}
		}
		s, err := Read(unsafe.Pointer(export(t, columns, batches)), Options{Shapes: map[string][]int{}})
		if err != nil {
			if len(rows) == 0 && status.CodeOf(err) == status.InvalidArgument {
				continue
			}
			t.Fatalf("batches %v: %v", batches, err)
		}
		if len(rows) > 0 {
			checkRows(t, rng, s, columns, rows)
		}
		if s.Len() != int64(len(rows)) {
			t.Errorf("%d records, want %d", s.Len(), len(rows))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("batches %v", batches)
		}
	}
}

func TestStream(t *testing.T)     { testColumns(t, columns) }
func TestHardStream(t *testing.T) { testColumns(t, append(slices.Clone(columns), hardColumns...)) }

// checkRows gathers random records and compares them with what was written.
func checkRows(t *testing.T, rng *rand.Rand, s source.Source, columns []written, rows []int) {
	t.Helper()
	records := []int64{-1}
	for range 50 {
		records = append(records, int64(rng.IntN(len(rows))))
	}
	var parts []source.Part
	for i, f := range s.Schema().Fields {
		c := columns[i]
		if f.Name != c.name || f.Type != c.dtype || !slices.Equal(f.Shape, c.shape) {
			t.Fatalf("field %+v is not column %s %v %v", f, c.name, c.dtype, c.shape)
		}
		part := wholeRow(i, f)
		if f.Nullable {
			part.Fill = map[dtype.Type]any{dtype.Float32: -1.0, dtype.Bool: true}[f.Type]
		} else if slices.ContainsFunc(rows, c.null) {
			t.Errorf("column %s has nulls and says it has none", c.name)
		}
		parts = append(parts, part)
	}
	if len(parts) != len(columns) {
		t.Fatalf("%d fields of %d columns; skipped %v", len(parts), len(columns), s.Schema().Skipped)
	}
	g, err := s.Gatherer(parts)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	jobs := make([]source.Job, len(parts))
	for i, f := range s.Schema().Fields {
		jobs[i] = source.Job{Part: i, Rows: [2]int{0, len(records)}, Dst: make([]byte, len(records)*f.RowBytes())}
	}
	if err := g.Gather(context.Background(), records, jobs); err != nil {
		t.Fatal(err)
	}
	for i, f := range s.Schema().Fields {
		for k, r := range records {
			got, want := jobs[i].Dst[k*f.RowBytes():][:f.RowBytes()], make([]byte, f.RowBytes())
			if r >= 0 {
				want = columns[i].want(rows[r])
			}
			if !bytes.Equal(got, want) {
				t.Errorf("column %s, record %d: got %v, want %v", f.Name, r, got, want)
			}
		}
	}
}

// TestSkipped makes sure that what cannot be an array says why.
func TestSkipped(t *testing.T) {
	text := written{name: "text", typ: arrow.BinaryTypes.String, append: func(b array.Builder, i int) { b.(*array.StringBuilder).Append("x") }}
	ragged := written{name: "ragged", typ: arrow.ListOf(arrow.PrimitiveTypes.Int8), append: func(b array.Builder, i int) {
		rows := b.(*array.ListBuilder)
		rows.Append(true)
		for range i % 3 {
			rows.ValueBuilder().(*array.Int8Builder).Append(1)
		}
	}}
	s, err := Read(unsafe.Pointer(export(t, []written{text, columns[0], ragged}, [][2]int{{1, 9}})), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	skipped := s.Schema().Skipped
	if len(skipped) != 1 || skipped[0].Name != "text" || skipped[0].Type != "string" || skipped[0].Reason == "" {
		t.Errorf("skipped %+v", skipped)
	}
	number, f, ok := s.Schema().Field("ragged")
	if !ok || !slices.Equal(f.Shape, []int{1}) {
		t.Fatalf("ragged is %+v: its first record has one value", f)
	}
	g, err := s.Gatherer([]source.Part{wholeRow(number, f)})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Gather(t.Context(), []int64{0, 1}, []source.Job{{Rows: [2]int{0, 2}, Dst: make([]byte, 2)}})
	want := `arrowio: field "ragged": record 1 has a list of 2 values in dimension 0, where the shape [1] of the rows needs 1; pad or cut the lists to one length, or give the right shape`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestShapes(t *testing.T) {
	list := hardColumns[0]
	_, err := Read(unsafe.Pointer(export(t, []written{list}, [][2]int{{0, 3}})), Options{Shapes: map[string][]int{"lists": {2}}})
	want := `arrowio: shapes names "lists", but the stream has no such column`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	s, err := Read(unsafe.Pointer(export(t, []written{list}, nil)), Options{})
	if err != nil || len(s.Schema().Skipped) != 1 {
		t.Fatalf("a list without rows: %v, %v", s, err)
	}
	s.Close()
	s, err = Read(unsafe.Pointer(export(t, []written{list}, nil)), Options{Shapes: map[string][]int{"list": {2}}})
	if err != nil || len(s.Schema().Fields) != 1 || s.Len() != 0 {
		t.Fatalf("a list with a given shape: %v, %v", s, err)
	}
	s.Close()
}

// TestFingerprint compares the same rows cut into batches in two ways, and
// other rows.
func TestFingerprint(t *testing.T) {
	hash := func(columns []written, batches ...[2]int) source.Fingerprint {
		s, err := Read(unsafe.Pointer(export(t, columns, batches)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f, err := s.Fingerprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	whole := hash(columns, [2]int{0, 100})
	if parts := hash(columns, [2]int{0, 30}, [2]int{30, 31}, [2]int{31, 100}); parts != whole {
		t.Error("the cut into batches changes the fingerprint")
	}
	if other := hash(columns, [2]int{1, 101}); other == whole {
		t.Error("other rows have the same fingerprint")
	}
	if fewer := hash(columns[1:], [2]int{0, 100}); fewer == whole {
		t.Error("another schema has the same fingerprint")
	}
}
