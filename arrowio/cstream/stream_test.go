package cstream

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/cdata"
	"github.com/apache/arrow/go/v17/arrow/memory/mallocator"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// export builds batches of columns with numbered rows, and exports them as a C
// stream. Each batch is the range [from, to) of a longer array.
func export(t *testing.T, columns []testColumn, batches [][2]int) *cdata.CArrowArrayStream {
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

func testColumns(t *testing.T, columns []testColumn) {
	rng := random.New(t)
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

// checkRows gathers random records and one padding record, and compares them with
// the rows that the columns describe.
func checkRows(t *testing.T, rng *rand.Rand, s source.Source, columns []testColumn, rows []int) {
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
		part := s.Schema().Whole(i)
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
	if err := g.Gather(context.Background(), source.Draw{}, records, jobs); err != nil {
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

// TestSkipped: a column that cannot be an array has a reason.
func TestSkipped(t *testing.T) {
	pair := testColumn{name: "pair", typ: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8}), append: func(b array.Builder, i int) { b.AppendEmptyValue() }}
	s, err := Read(unsafe.Pointer(export(t, []testColumn{pair, columns[0]}, [][2]int{{1, 9}})), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const reason = "a struct has no single type; store its children as columns of their own"
	if skipped := s.Schema().Skipped; len(skipped) != 1 || skipped[0].Name != "pair" || skipped[0].Type != "struct<x: int8>" || skipped[0].Reason != reason {
		t.Errorf("skipped %+v", skipped)
	}
}

func TestShapes(t *testing.T) {
	list := hardColumns[0]
	_, err := Read(unsafe.Pointer(export(t, []testColumn{list}, [][2]int{{0, 3}})), Options{Shapes: map[string][]int{"lists": {2}}})
	want := `arrowio: a shape is given for "lists", but there is no such column; there are "list"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	s, err := Read(unsafe.Pointer(export(t, []testColumn{list}, nil)), Options{})
	if err != nil || s.Schema().Fields[0].Ragged != 1 {
		t.Fatalf("a list without rows: %v, %v", s, err)
	}
	s.Close()
	s, err = Read(unsafe.Pointer(export(t, []testColumn{list}, nil)), Options{Shapes: map[string][]int{"list": {2}}})
	if err != nil || len(s.Schema().Fields) != 1 || s.Len() != 0 {
		t.Fatalf("a list with a given shape: %v, %v", s, err)
	}
	s.Close()
}

// TestFingerprint compares the same rows in different batches, and other rows.
func TestFingerprint(t *testing.T) {
	hash := func(columns []testColumn, batches ...[2]int) source.Fingerprint {
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
		t.Error("the division into batches changes the fingerprint")
	}
	if other := hash(columns, [2]int{1, 101}); other == whole {
		t.Error("other rows have the same fingerprint")
	}
	if fewer := hash(columns[1:], [2]int{0, 100}); fewer == whole {
		t.Error("another schema has the same fingerprint")
	}
}
