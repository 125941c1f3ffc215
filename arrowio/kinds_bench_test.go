package arrowio_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// BenchmarkKinds gathers random rows of each kind of Arrow type from a file in
// the page cache: 256 rows of 512 elements, or 4,096 scalars, per step.
func BenchmarkKinds(b *testing.B) {
	number := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 1 << 21 {
		number.Append(int64(i % 1000))
	}
	numbers := number.NewInt64Array()
	values := func(n int) *array.Int64 { return array.NewSlice(numbers, 0, int64(n)).(*array.Int64) }
	const rows, batches = 1024, 16
	for _, c := range []struct {
		name   string
		column arrow.Array
		to     dtype.Type
		io     string
		codec  ipc.Option
	}{
		{"list", listColumn(values(512*rows), rows), dtype.Int64, "map", nil},
		{"list narrowed", listColumn(values(512*rows), rows), dtype.Int32, "map", nil},
		{"list read", listColumn(values(512*rows), rows), dtype.Int64, "read", nil},
		{"list lz4", listColumn(values(512*rows), rows), dtype.Int64, "map", ipc.WithLZ4()},
		{"fixed size list with nulls", fixedListColumn(withNulls(values(512*rows), 5000), rows), dtype.Int64, "map", nil},
		{"numbers with nulls", withNulls(values(64*rows), 10), dtype.Int64, "map", nil},
		{"dictionary", dictionaryColumn(values(64 * rows)), dtype.Int64, "map", nil},
	} {
		path := temp(b, "x.arrow")
		writeBatches(b, path, c.column, batches, c.codec)
		b.Run(c.name, func(b *testing.B) {
			ds, err := arrowio.OpenFiles(b.Context(), []string{path}, arrowio.Options{IO: c.io})
			if err != nil {
				b.Fatal(err)
			}
			defer ds.Close()
			part := whole(0, ds.Schema().Fields[0])
			part.To = c.to
			g, err := ds.Gatherer([]source.Part{part})
			if err != nil {
				b.Fatal(err)
			}
			n, width := 4096, part.Bytes(c.to)
			if width > 8 {
				n = 256
			}
			random, steps := rand.New(rand.NewPCG(1, 2)), make([][]int64, 64)
			for i := range steps {
				for range n {
					steps[i] = append(steps[i], random.Int64N(ds.Len()))
				}
			}
			jobs := []source.Job{{Rows: [2]int{0, n}, Dst: make([]byte, n*width)}}
			b.SetBytes(int64(n * width))
			b.ReportAllocs()
			step := 0
			for b.Loop() {
				if err := g.Gather(context.Background(), source.Draw{}, steps[step%len(steps)], jobs); err != nil {
					b.Fatal(err)
				}
				step++
			}
		})
	}
}

func listColumn(values arrow.Array, rows int) arrow.Array {
	offsets := make([]int32, rows+1)
	for i := range offsets {
		offsets[i] = int32(i * values.Len() / rows)
	}
	data := array.NewData(arrow.ListOf(values.DataType()), rows, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets))}, []arrow.ArrayData{values.Data()}, 0, 0)
	return array.NewListData(data)
}

func fixedListColumn(values arrow.Array, rows int) arrow.Array {
	data := array.NewData(arrow.FixedSizeListOf(int32(values.Len()/rows), values.DataType()), rows, []*memory.Buffer{nil}, []arrow.ArrayData{values.Data()}, 0, 0)
	return array.NewFixedSizeListData(data)
}

// withNulls makes every n-th value null.
func withNulls(values *array.Int64, n int) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range values.Len() {
		if i%n == 0 {
			b.AppendNull()
		} else {
			b.Append(values.Value(i))
		}
	}
	return b.NewArray()
}

func dictionaryColumn(values *array.Int64) arrow.Array {
	b := array.NewDictionaryBuilder(memory.DefaultAllocator, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Int64}).(*array.Int64DictionaryBuilder)
	for i := range values.Len() {
		if err := b.Append(values.Value(i)); err != nil {
			panic(fmt.Sprint(err))
		}
	}
	return b.NewArray()
}

// writeBatches writes a file of equal record batches.
func writeBatches(b testing.TB, path string, column arrow.Array, batches int, codec ipc.Option) {
	b.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: column.DataType(), Nullable: true}}, nil)
	record := array.NewRecord(schema, []arrow.Array{column}, int64(column.Len()))
	var options []ipc.Option
	if codec != nil {
		options = append(options, codec)
	}
	writeIPC(b, path, false, schema, slices.Repeat([]arrow.Record{record}, batches), options...)
}
