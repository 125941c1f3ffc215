package arrowio_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/core/source"
)

// everything is a schema with every kind of field, and some that are skipped.
var everything = arrow.NewSchema([]arrow.Field{
	{Name: "int8", Type: arrow.PrimitiveTypes.Int8},
	{Name: "uint64", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "int64", Type: arrow.PrimitiveTypes.Int64},
	{Name: "float16", Type: arrow.FixedWidthTypes.Float16},
	{Name: "float64", Type: arrow.PrimitiveTypes.Float64},
	{Name: "bool", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "time", Type: arrow.FixedWidthTypes.Timestamp_us},
	{Name: "text", Type: arrow.BinaryTypes.String},
	{Name: "hash", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}},
	{Name: "image", Type: arrow.FixedSizeListOfNonNullable(4, arrow.FixedSizeListOfNonNullable(3, arrow.PrimitiveTypes.Float32))},
	{Name: "bits", Type: arrow.FixedSizeListOfNonNullable(5, arrow.FixedWidthTypes.Boolean)},
	{Name: "tokens", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	{Name: "large", Type: arrow.LargeListOfNonNullable(arrow.FixedSizeListOfNonNullable(2, arrow.PrimitiveTypes.Uint16))},
	{Name: "nested", Type: arrow.ListOfNonNullable(arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint8))},
	{Name: "null int", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "null bool", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "null image", Type: arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Int16), Nullable: true},
	{Name: "null tokens", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "null nested", Type: arrow.ListOf(arrow.LargeListOf(arrow.FixedWidthTypes.Boolean)), Nullable: true},
	{Name: "null hash", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}, Nullable: true},
	{Name: "code", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.PrimitiveTypes.Float32}, Nullable: true},
	{Name: "codes", Type: arrow.FixedSizeListOfNonNullable(3, dictionaryType)},
	{Name: "null codes", Type: arrow.ListOf(dictionaryType), Nullable: true},
	{Name: "bfloat16", Type: arrow.PrimitiveTypes.Uint16, Metadata: bfloat16Metadata},
	{Name: "bfloat16 row", Type: arrow.FixedSizeListOf(4, &arrow.FixedSizeBinaryType{ByteWidth: 2}), Nullable: true, Metadata: bfloat16Metadata},
	{Name: "bfloat16 list", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint16), Metadata: bfloat16Metadata},
}, nil)

var (
	dictionaryType   = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.PrimitiveTypes.Float32}
	bfloat16Metadata = arrow.NewMetadata([]string{"meshfeed.dtype"}, []string{"bfloat16"})
)

// lengths are the lengths of the lists, by depth.
var lengths = map[string][]int{"tokens": {6}, "large": {3}, "nested": {2, 3}, "null tokens": {6}, "null nested": {3, 4}, "null codes": {2}, "bfloat16 list": {3}}

// writeIPC writes record batches to a file or stream.
func writeIPC(t testing.TB, path string, stream bool, schema *arrow.Schema, batches []arrow.Record, options ...ipc.Option) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	options = append(options[:len(options):len(options)], ipc.WithSchema(schema))
	var w interface {
		Write(arrow.Record) error
		Close() error
	} = ipc.NewWriter(f, options...)
	if !stream {
		if w, err = ipc.NewFileWriter(f, options...); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// save writes random record batches of the given sizes to a file or stream, and
// returns them.
func save(t testing.TB, path string, stream bool, schema *arrow.Schema, sizes []int, seed uint64, options ...ipc.Option) []arrow.Record {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	var records []arrow.Record
	for _, n := range sizes {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i, field := range schema.Fields() {
			if d := dictionaryOf(b.Field(i)); d != nil && !stream {
				insertAll(d) // a file has one dictionary; in streams each batch replaces it
			}
			for range n {
				add(random, b.Field(i), field, field.Nullable, lengths[field.Name])
			}
		}
		records = append(records, b.NewRecord())
	}
	writeIPC(t, path, stream, schema, records, options...)
	return records
}

// dictionaryOf returns the dictionary of a column, or of the values of its lists.
func dictionaryOf(b array.Builder) *array.Float32DictionaryBuilder {
	switch b := b.(type) {
	case *array.Float32DictionaryBuilder:
		return b
	case array.ListLikeBuilder:
		return dictionaryOf(b.ValueBuilder())
	}
	return nil
}

// insertAll makes the dictionary 0 to 9.
func insertAll(d *array.Float32DictionaryBuilder) {
	values := array.NewFloat32Builder(memory.DefaultAllocator)
	values.AppendValues([]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, nil)
	if err := d.InsertDictValues(values.NewFloat32Array()); err != nil {
		panic(err)
	}
}

// add appends a random value, sometimes null.
func add(random *rand.Rand, b array.Builder, field arrow.Field, nullable bool, lengths []int) {
	if nullable && random.IntN(5) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(random.Int()))
	case *array.Int16Builder:
		b.Append(int16(random.Int()))
	case *array.Int32Builder:
		b.Append(random.Int32())
	case *array.Int64Builder:
		b.Append(random.Int64N(1 << 31))
	case *array.Uint8Builder:
		b.Append(uint8(random.Int()))
	case *array.Uint16Builder:
		b.Append(uint16(random.Int()))
	case *array.Uint64Builder:
		b.Append(random.Uint64())
	case *array.Float16Builder:
		b.Append(float16.New(random.Float32()))
	case *array.Float32Builder:
		b.Append(random.Float32())
	case *array.Float64Builder:
		b.Append(random.NormFloat64())
	case *array.BooleanBuilder:
		b.Append(random.IntN(2) == 1)
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(random.Int64()))
	case *array.StringBuilder:
		b.Append(fmt.Sprint(random.Int()))
	case *array.FixedSizeBinaryBuilder:
		value := make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth)
		for i := range value {
			value[i] = byte(random.Int())
		}
		b.Append(value)
	case *array.Float32DictionaryBuilder:
		if err := b.Append(float32(random.IntN(10))); err != nil {
			panic(err)
		}
	default:
		addList(random, b, field, lengths)
	}
}

func addList(random *rand.Rand, b array.Builder, field arrow.Field, lengths []int) {
	elem := field.Type.(arrow.ListLikeType).ElemField()
	var n int
	switch b := b.(type) {
	case *array.FixedSizeListBuilder:
		b.Append(true)
		n = int(field.Type.(*arrow.FixedSizeListType).Len())
	case array.ListLikeBuilder:
		b.Append(true)
		n, lengths = lengths[0], lengths[1:]
	}
	for range n {
		add(random, b.(array.ListLikeBuilder).ValueBuilder(), elem, elem.Nullable, lengths)
	}
}

// readBack reads a file or stream with Arrow's own library.
func readBack(t testing.TB, path string) []arrow.Record {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records, err := batchesOf(data)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// reference returns the bytes of a row of a dataset's field, as Arrow's library has
// read the files.
func reference(ds source.Source, records []arrow.Record) func(field int, record int64) []byte {
	fields := ds.Schema().Fields
	return func(field int, record int64) []byte {
		for _, rec := range records {
			if record >= rec.NumRows() {
				record -= rec.NumRows()
				continue
			}
			column := rec.Schema().FieldIndices(fields[field].Name)[0]
			return appendRow(nil, rec.Column(column), int(record), fields[field].RowBytes())
		}
		panic("no such record")
	}
}

func temp(t testing.TB, name string) string { return filepath.Join(t.TempDir(), name) }
