package cstream

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// testColumn is one column of the test data. Nulls are filled with -1 or true: see
// checkRows.
type testColumn struct {
	name   string
	typ    arrow.DataType
	meta   arrow.Metadata
	shape  []int                        // shape of a row
	dtype  dtype.Type                   // element type
	append func(b array.Builder, i int) // appends row i
	want   func(i int) []byte           // the bytes that a gather of row i must deliver
	null   func(i int) bool             // true if row i may have a null: the field must be nullable
}

// le returns the bytes of values in little-endian order.
func le[T any](values ...T) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, values)
	return b.Bytes()
}

func fsl(n int32, t arrow.DataType) arrow.DataType { return arrow.FixedSizeListOfNonNullable(n, t) }

var none = func(int) bool { return false }

// columns store rows at a fixed stride: the number of a row determines its address.
var columns = []testColumn{
	{name: "int32", typ: arrow.PrimitiveTypes.Int32, dtype: dtype.Int32, null: none,
		append: func(b array.Builder, i int) { b.(*array.Int32Builder).Append(int32(i * 3)) },
		want:   func(i int) []byte { return le(int32(i * 3)) }},
	{name: "bool", typ: arrow.FixedWidthTypes.Boolean, dtype: dtype.Bool, null: none,
		append: func(b array.Builder, i int) { b.(*array.BooleanBuilder).Append(i%3 == 0) },
		want:   func(i int) []byte { return le(i%3 == 0) }},
	{name: "float16", typ: arrow.FixedWidthTypes.Float16, dtype: dtype.Float16, null: none,
		append: func(b array.Builder, i int) {
			b.(*array.Float16Builder).Append(float16.FromBits(uint16(i)))
		},
		want: func(i int) []byte { return le(uint16(i)) }},
	{name: "timestamp", typ: arrow.FixedWidthTypes.Timestamp_us, dtype: dtype.Int64, null: none,
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

// hardColumns have offsets, dictionary indices or nulls.
var hardColumns = []testColumn{
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
	{name: "dictionary", typ: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float64}, dtype: dtype.Float64, null: none,
		append: func(b array.Builder, i int) { b.(*array.Float64DictionaryBuilder).Append(float64(i%7) / 2) },
		want:   func(i int) []byte { return le(float64(i%7) / 2) }},
	{name: "nullable", typ: arrow.PrimitiveTypes.Float32, dtype: dtype.Float32, null: func(i int) bool { return i%5 == 2 },
		append: func(b array.Builder, i int) {
			if i%5 == 2 {
				b.AppendNull()
				return
			}
			b.(*array.Float32Builder).Append(float32(i))
		},
		want: func(i int) []byte {
			if i%5 == 2 {
				return le(float32(-1)) // the fill value
			}
			return le(float32(i))
		}},
	{name: "nulls inside", typ: arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Boolean), dtype: dtype.Bool, shape: []int{2}, null: func(i int) bool { return i%4 != 0 },
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
			return [][]byte{{1, 1}, {0, 1}, {0, 1}, {1, 1}}[i%4] // a null is 1, the fill value
		}},
}

// rowBytes returns n bytes that differ from row to row.
func rowBytes(i, n int) []byte {
	out := make([]byte, n)
	for k := range out {
		out[k] = byte(i*31 + k*7)
	}
	return out
}
