package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/records"
	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// raggedSchema has every kind of ragged column, and two fixed ones.
var raggedSchema = func() *arrow.Schema {
	list := func(t arrow.DataType) arrow.DataType { return arrow.ListOf(t) }
	text := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
	types := []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary,
		list(arrow.PrimitiveTypes.Int32), arrow.LargeListOf(arrow.PrimitiveTypes.Float32), list(arrow.FixedWidthTypes.Boolean),
		list(arrow.FixedWidthTypes.Timestamp_us), list(list(arrow.PrimitiveTypes.Int64)), list(arrow.LargeListOf(arrow.FixedWidthTypes.Boolean)),
		list(arrow.BinaryTypes.String), list(list(arrow.BinaryTypes.LargeBinary)),
		list(arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int16)), list(&arrow.FixedSizeBinaryType{ByteWidth: 3}),
		arrow.FixedSizeListOf(2, arrow.BinaryTypes.String), arrow.FixedSizeListOf(2, list(arrow.PrimitiveTypes.Int8)),
		list(dictionaryType), text, list(text), arrow.FixedSizeListOf(2, text),
		arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView, list(arrow.BinaryTypes.StringView), list(list(arrow.BinaryTypes.BinaryView)),
		arrow.FixedSizeListOf(2, arrow.BinaryTypes.BinaryView),
	}
	fields := []arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Int32}}
	for _, t := range types {
		fields = append(fields, arrow.Field{Name: t.String(), Type: t, Nullable: true}, arrow.Field{Name: t.String() + " not null", Type: t})
	}
	return arrow.NewSchema(append(fields, arrow.Field{Name: "maybe", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), nil)
}()

// appendRandom appends a random value. Lists have 0 to 4 elements, text up to 19 bytes.
func appendRandom(r *rand.Rand, b array.Builder, typ arrow.DataType, nullable bool) {
	if nullable && r.IntN(5) == 0 {
		b.AppendNull()
		return
	}
	bytes := make([]byte, r.IntN(20))
	for i := range bytes {
		bytes[i] = 'a' + byte(r.IntN(26))
	}
	switch b := b.(type) {
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(fmt.Sprint("value"[:r.IntN(5)], r.IntN(7))); err != nil {
			panic(err)
		}
	case array.StringLikeBuilder:
		b.Append(string(bytes))
	case *array.BinaryBuilder:
		b.Append(bytes)
	case *array.BinaryViewBuilder:
		b.Append(bytes)
	case array.ListLikeBuilder:
		n := r.IntN(5)
		if fixed, ok := typ.(*arrow.FixedSizeListType); ok {
			n = int(fixed.Len())
		}
		b.Append(true)
		child := typ.(arrow.ListLikeType).ElemField()
		for range n {
			appendRandom(r, b.ValueBuilder(), child.Type, nullable)
		}
	default:
		add(r, b, arrow.Field{Type: typ}, false, nil)
	}
}

// raggedBatches returns random record batches of the schema. Unless stream is true, all of
// them have the same dictionaries.
func raggedBatches(r *rand.Rand, stream bool, sizes ...int) []arrow.Record {
	var batches []arrow.Record
	for _, n := range sizes {
		b := array.NewRecordBuilder(memory.DefaultAllocator, raggedSchema)
		for i, f := range raggedSchema.Fields() {
			if !stream {
				insertWords(b.Field(i))
			}
			for range n {
				appendRandom(r, b.Field(i), f.Type, f.Nullable)
			}
		}
		batches = append(batches, b.NewRecord())
	}
	return batches
}

// insertWords inserts all values into the dictionary of a column.
func insertWords(b array.Builder) {
	switch b := b.(type) {
	case *array.Float32DictionaryBuilder:
		insertAll(b)
	case *array.BinaryDictionaryBuilder:
		words := array.NewStringBuilder(memory.DefaultAllocator)
		for i := range 5 {
			for k := range 7 {
				words.Append(fmt.Sprint("value"[:i], k))
			}
		}
		if err := b.InsertStringDictValues(words.NewStringArray()); err != nil {
			panic(err)
		}
	case array.ListLikeBuilder:
		insertWords(b.ValueBuilder())
	}
}

// raggedReference returns a function that reads a row of a ragged field from Arrow's own
// arrays.
func raggedReference(ds source.Source, batches []arrow.Record) func(span *source.Span) {
	fields := ds.Schema().Fields
	return func(span *source.Span) {
		f, record := fields[span.Field], span.Record
		for _, b := range batches {
			if record >= b.NumRows() {
				record -= b.NumRows()
				continue
			}
			if f.Ragged > 1 {
				span.Lists = make([][]int64, f.Ragged-1)
			}
			expectRow(span, f, b.Column(b.Schema().FieldIndices(f.Name)[0]), int(record), 0)
			for _, null := range span.Nulls {
				if null {
					return
				}
			}
			span.Nulls = nil
			return
		}
	}
}

// expectRow adds element i of an array to a row. Depth is the number of lists around it.
func expectRow(span *source.Span, f source.Field, a arrow.Array, i, depth int) {
	if e, ok := a.(array.ExtensionArray); ok {
		a = e.Storage()
	}
	if depth == f.Ragged {
		span.Row = appendRow(span.Row, a, i, f.RowBytes())
		span.Nulls = appendNulls(span.Nulls, a, i, f.RowBytes()/f.Type.Size())
		return
	}
	if depth == 0 && a.IsNull(i) {
		span.Row, span.Lists = nil, nil
		return
	}
	length := int64(-1)
	span.Row = append([]byte{}, span.Row...)
	var from, to int64
	text := ""
	if d, ok := a.(*array.Dictionary); ok && !a.IsNull(i) {
		a, i = d.Dictionary(), d.GetValueIndex(i)
	}
	switch {
	case a.IsNull(i):
	default:
		switch a := a.(type) {
		case array.StringLike:
			text = a.Value(i)
			length = int64(len(text))
		case *array.Binary:
			text = string(a.Value(i))
			length = int64(len(text))
		case *array.LargeBinary:
			text = string(a.Value(i))
			length = int64(len(text))
		case *array.BinaryView:
			text = string(a.Value(i))
			length = int64(len(text))
		case array.ListLike:
			from, to = a.ValueOffsets(i)
			length = to - from
		default:
			panic(fmt.Sprintf("a list of type %T", a))
		}
	}
	if depth > 0 {
		span.Lists[depth-1] = append(span.Lists[depth-1], length)
	}
	span.Row = append(span.Row, text...)
	for range len(text) {
		span.Nulls = append(span.Nulls, false)
	}
	for k := from; k < to; k++ {
		expectRow(span, f, a.(array.ListLike).ListValues(), int(k), depth+1)
	}
}

// appendNulls adds which of the n elements of an element are null.
func appendNulls(nulls []bool, a arrow.Array, i, n int) []bool {
	if list, ok := a.(array.ListLike); ok && !a.IsNull(i) {
		from, to := list.ValueOffsets(i)
		for k := from; k < to; k++ {
			nulls = appendNulls(nulls, list.ListValues(), int(k), n/int(to-from))
		}
		return nulls
	}
	for range n {
		nulls = append(nulls, a.IsNull(i))
	}
	return nulls
}

// TestRagged runs the suite of all sources over ragged columns, in files and in memory, and
// compares every row with what Arrow's own library reads.
func TestRagged(t *testing.T) {
	sizes := []int{40, 0, 1, 25}
	for name, options := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		for _, stream := range []bool{false, true} {
			r := random.New(t)
			path := temp(t, "x.arrow")
			batches := raggedBatches(r, stream, sizes...)
			writeIPC(t, path, stream, raggedSchema, batches, options...)
			for _, io := range []string{"map", "read"} {
				if random.Race && (name == "zstd" || stream != (io == "read")) {
					continue
				}
				t.Run(fmt.Sprintf("%s/stream_%v/%s", name, stream, io), func(t *testing.T) {
					runRagged(t, batches, func() (source.Source, error) {
						return arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: io})
					})
				})
			}
		}
	}
	for cut := range int64(4) {
		if random.Race && cut != 1 {
			continue
		}
		r := random.New(t)
		path := temp(t, "x.arrow")
		batches := raggedBatches(r, true, sizes...)
		writeIPC(t, path, true, raggedSchema, batches)
		for i, b := range batches {
			batches[i] = b.NewSlice(min(cut, b.NumRows()), b.NumRows())
		}
		t.Run(fmt.Sprint("memory/", cut), func(t *testing.T) {
			runRagged(t, batches, func() (source.Source, error) {
				return records.New(raggedSchema, batches, records.Options{})
			})
		})
		schema, of18 := read18(t, path, cut)
		t.Run(fmt.Sprint("memory18/", cut), func(t *testing.T) {
			runRagged(t, batches, func() (source.Source, error) {
				return records18.New(schema, of18, records18.Options{})
			})
		})
	}
}

func runRagged(t *testing.T, batches []arrow.Record, make func() (source.Source, error)) {
	open := func(t *testing.T) source.Source {
		ds, err := make()
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds := open(t)
	defer ds.Close()
	if s := ds.Schema(); len(s.Fields) != len(raggedSchema.Fields()) || len(s.Fixed()) != 2 {
		t.Fatalf("%d fields, fixed %v, skipped %+v", len(s.Fields), s.Fixed(), s.Skipped)
	}
	sourcetest.Suite{Open: open, Ragged: raggedReference(ds, batches)}.Run(t)
	if random.Race {
		return // what follows reads in one goroutine
	}
	everyRaggedRow(t, ds, batches)
	sameRows(t, random.New(t), ds, batches)
}

// everyRaggedRow compares all rows of all ragged fields with the reference.
func everyRaggedRow(t *testing.T, ds source.Source, batches []arrow.Record) {
	t.Helper()
	reference := raggedReference(ds, batches)
	for i, f := range ds.Schema().Fields {
		if f.Ragged == 0 {
			continue
		}
		reader, err := ds.Reader([]int{i})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		for record := range ds.Len() {
			want := source.Span{Field: i, Record: record}
			reference(&want)
			spans := []source.Span{{Field: i, Record: record}}
			err := reader.Read(context.Background(), source.Draw{}, spans, func() error {
				got := spans[0]
				if got.Null() == want.Null() && bytes.Equal(got.Row, want.Row) && slices.Equal(got.Nulls, want.Nulls) && slices.EqualFunc(got.Lists, want.Lists, slices.Equal) {
					return nil
				}
				return fmt.Errorf("got %#v, want %#v", got, want)
			})
			if err != nil {
				t.Fatalf("field %q, record %d: %v", f.Name, record, err)
			}
		}
	}
}

// readRagged returns the rows of a ragged field, with their lengths and nulls.
func readRagged(ds source.Source, field int, numbers []int64) (out []byte, err error) {
	r, err := ds.Reader([]int{field})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var spans []source.Span
	var existing []int64
	for _, record := range numbers {
		if record >= 0 {
			spans, existing = append(spans, source.Span{Field: field, Record: record}), append(existing, record)
		}
	}
	lengths := make([]int64, len(existing))
	if err := r.Lengths(context.Background(), source.Draw{}, field, existing, lengths); err != nil {
		return nil, err
	}
	for _, n := range lengths {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	return out, r.Read(context.Background(), source.Draw{}, spans, func() error {
		for i := range spans {
			out = fmt.Appendf(out, "%v %v %v", spans[i].Row, spans[i].Nulls, spans[i].Lists)
		}
		return nil
	})
}

// TestRaggedOffsets: offsets that are negative, that decrease or that lie beyond the values
// are errors of the rows that have them, and of their lengths where they show it.
func TestRaggedOffsets(t *testing.T) {
	const again = "; the data are damaged; write them again"
	for _, c := range []struct {
		typ     arrow.DataType
		offsets []int32
		record  int64
		want    string
	}{
		{arrow.BinaryTypes.String, []int32{0, 3, 2, 4}, 1, `arrowio: field "x": record 1: its list goes from element 3 to 2` + again},
		{arrow.BinaryTypes.String, []int32{-1, 3, 3, 4}, 0, `arrowio: field "x": record 0: its list begins at element -1` + again},
		{arrow.BinaryTypes.String, []int32{0, 3, 3, 9}, 2, `arrowio: field "x": record 2: its list goes from element 3 to 9 of 8` + again},
		{arrow.ListOf(arrow.PrimitiveTypes.Int16), []int32{0, 3, 2, 3}, 1, `arrowio: field "x": record 1: its list goes from element 3 to 2` + again},
		{arrow.ListOf(arrow.PrimitiveTypes.Int16), []int32{0, 1, 3, 5}, 2, `arrowio: field "x": record 2: its list goes from element 3 to 5 of 4` + again},
	} {
		offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.offsets))
		values := memory.NewBufferBytes([]byte("abcdefgh"))
		data := array.NewData(c.typ, 3, []*memory.Buffer{nil, offsets, values}, nil, 0, 0)
		if list, ok := c.typ.(*arrow.ListType); ok {
			child := array.NewData(list.Elem(), 4, []*memory.Buffer{nil, values}, nil, 0, 0)
			data = array.NewData(c.typ, 3, []*memory.Buffer{nil, offsets}, []arrow.ArrayData{child}, 0, 0)
		}
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: c.typ}}, nil)
		ds, err := records.New(schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{unchecked{data: data}}, 3)}, records.Options{})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "arrowio: record batch 0 of the records: ") {
				t.Error(err)
			}
			continue // lists in memory are checked when the source is made
		}
		_, err = readRagged(ds, 0, []int64{c.record})
		if status.CodeOf(err) != status.DataLoss || err.Error() != c.want {
			t.Errorf("offsets %v: got  %v\nwant %s", c.offsets, err, c.want)
		}
		if err := source.Lengths(t.Context(), ds, 0, 0, make([]int64, 3)); err == nil || err.Error() != c.want {
			t.Errorf("lengths of offsets %v: got  %v\nwant %s", c.offsets, err, c.want)
		}
		for record := range int64(3) {
			if _, err := readRagged(ds, 0, []int64{record}); err == nil && record == c.record {
				t.Errorf("offsets %v: record %d was read", c.offsets, record)
			}
		}
		if _, err := ds.Fingerprint(t.Context()); err != nil {
			t.Errorf("a damaged row prevents the fingerprint: %v", err)
		}
	}
}

// unchecked is an array. Arrow's library has not looked at its buffers.
type unchecked struct {
	arrow.Array
	data arrow.ArrayData
}

func (a unchecked) Data() arrow.ArrayData    { return a.data }
func (a unchecked) DataType() arrow.DataType { return a.data.DataType() }
func (a unchecked) Len() int                 { return a.data.Len() }
func (a unchecked) NullN() int               { return 0 }
func (a unchecked) Retain()                  {}
func (a unchecked) Release()                 {}

// TestLengthsOfSeveralTypes reads the lengths of a field that two files store in two ways.
func TestLengthsOfSeveralTypes(t *testing.T) {
	field := arrow.Field{Name: "x", Type: arrow.ListOf(arrow.Null), Nullable: true}
	nulls := saveJSON(t, field, `[null, null]`)
	field.Type = arrow.ListOf(arrow.PrimitiveTypes.Int8)
	numbers := saveJSON(t, field, `[[1], [2, 3], null, []]`)
	ds := must(arrowio.OpenFiles(t.Context(), []string{nulls, numbers, nulls}, arrowio.Options{Duplicates: "allow"}))
	defer ds.Close()
	lengths := make([]int64, 8)
	if err := source.Lengths(t.Context(), ds, 0, 0, lengths); err != nil || !slices.Equal(lengths, []int64{-1, -1, 1, 2, -1, 0, -1, -1}) {
		t.Errorf("lengths %v, error %v", lengths, err)
	}
}
