package arrowio_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/columns"
)

// sameRows reads all fields of random records as Arrow arrays, with offsets of both
// widths, and compares every value with the record batches.
func sameRows(t *testing.T, r *rand.Rand, ds source.Source, batches []arrow.Record) {
	t.Helper()
	var fields []int
	for i := range ds.Schema().Fields {
		fields = append(fields, i)
	}
	numbers := make([]int64, 70)
	for i := range numbers {
		numbers[i] = r.Int64N(ds.Len())
	}
	for _, wide := range []bool{false, true} {
		reader, err := columns.New(ds, fields, columns.Options{Wide: wide})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		for from := 0; from < len(numbers); {
			b, err := reader.Read(t.Context(), numbers[from:], 2000)
			if err != nil || b.Rows == 0 {
				t.Fatal(b, err)
			}
			for _, c := range b.Columns {
				got := arrayOf(c.Field, c.Levels, memberType(batches[0].Schema(), c.Field.Name))
				for i := range b.Rows {
					a, row := cell(batches, c.Field.Name, numbers[from+i])
					if out, want := valueOf(c.Field, got, i), valueOf(c.Field, a, row); out != want {
						t.Fatalf("field %q (%v), record %d: got %s, want %s", c.Field.Name, got.DataType(), numbers[from+i], out, want)
					}
				}
			}
			from += b.Rows
		}
	}
}

// valueOf prints a value of an array. If all values of an element are null, the element is
// one null.
func valueOf(f source.Field, a arrow.Array, i int) string {
	out, err := json.Marshal(a.GetOneForMarshal(i))
	if err != nil {
		panic(err)
	}
	if len(f.Shape) > 0 {
		var value any
		decoder := json.NewDecoder(bytes.NewReader(out))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			panic(err)
		}
		if out, err = json.Marshal(joinNulls(value, f.Ragged)); err != nil {
			panic(err)
		}
	}
	text := string(out)
	if f.IsBytes() && !a.IsNull(i) { // Arrow's library prints empty bytes as null, or as ""
		text = strings.ReplaceAll(text, "null", `""`)
	}
	return text
}

// joinNulls replaces elements at a depth by null if all their values are.
func joinNulls(value any, depth int) any {
	list, ok := value.([]any)
	switch {
	case !ok:
		return value
	case depth > 0:
		for i, element := range list {
			list[i] = joinNulls(element, depth-1)
		}
	case !slices.ContainsFunc(list, func(element any) bool { return element != nil }):
		return nil
	}
	return list
}

// cell returns the array and the index of a record's row.
func cell(batches []arrow.Record, name string, record int64) (arrow.Array, int) {
	for _, b := range batches {
		if record < b.NumRows() {
			return b.Column(b.Schema().FieldIndices(name)[0]), int(record)
		}
		record -= b.NumRows()
	}
	panic("no such record")
}

// memberType returns the type of the innermost values of a column.
func memberType(s *arrow.Schema, name string) arrow.DataType {
	fields, _ := s.FieldsByName(name)
	typ := fields[0].Type
	for {
		switch inner := typ.(type) {
		case arrow.ListLikeType:
			typ = inner.Elem()
		case *arrow.DictionaryType:
			typ = inner.ValueType
		case arrow.ExtensionType:
			typ = inner.StorageType()
		default:
			return typ
		}
	}
}

// arrayOf makes an array of levels. Its innermost values have a type. If that is a
// binary type of fixed size, the last level of lists holds its bytes.
func arrayOf(f source.Field, levels []columns.Level, values arrow.DataType) arrow.Array {
	var data arrow.ArrayData
	if binary, ok := values.(*arrow.FixedSizeBinaryType); ok {
		last, bytes := levels[len(levels)-2], levels[len(levels)-1]
		data = array.NewData(binary, last.Length, []*memory.Buffer{bufferOf(last.Validity), bufferOf(bytes.Data)}, nil, last.Nulls, 0)
		levels = levels[:len(levels)-2]
	}
	for d := len(levels) - 1; d >= 0; d-- {
		l := levels[d]
		buffers, typ, children := []*memory.Buffer{bufferOf(l.Validity)}, values, []arrow.ArrayData(nil)
		if l.Offsets != nil {
			buffers = append(buffers, bufferOf(l.Offsets))
		}
		switch l.Kind {
		case columns.FixedList:
			typ, children = arrow.FixedSizeListOf(int32(l.Size), data.DataType()), []arrow.ArrayData{data}
		case columns.List:
			typ, children = arrow.ListOf(data.DataType()), []arrow.ArrayData{data}
			if l.Wide {
				typ = arrow.LargeListOf(data.DataType())
			}
		default:
			buffers = append(buffers, bufferOf(l.Data))
		}
		if l.Kind == columns.Text {
			typ = map[[2]bool]arrow.DataType{
				{false, false}: arrow.BinaryTypes.Binary, {false, true}: arrow.BinaryTypes.LargeBinary,
				{true, false}: arrow.BinaryTypes.String, {true, true}: arrow.BinaryTypes.LargeString,
			}[[2]bool{l.UTF8, l.Wide}]
		}
		data = array.NewData(typ, l.Length, buffers, children, l.Nulls, 0)
	}
	return array.MakeFromData(data)
}

func bufferOf(b []byte) *memory.Buffer {
	if b == nil {
		return nil
	}
	return memory.NewBufferBytes(b)
}
