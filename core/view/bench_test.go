package view_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/records"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/packing"
)

// BenchmarkPassThrough gathers 1024 shuffled rows of 784 bytes from memory, bare and
// through five views.
func BenchmarkPassThrough(b *testing.B) {
	const n, width = 1 << 17, 784
	bare := must(arrowio.FromSlices(arrowio.Slice("x", counted[uint8](n*width), width)))
	v := must(view.Rename(must(view.Select(bare, "x")), map[string]string{"x": "y"}))
	v = must(view.Slice(must(view.FilterFunc(v, func(k int64) bool { return k%8 > 0 })), 1, 100001))
	v = must(view.Take(v, permutation(100000)))
	for _, c := range []struct {
		name string
		src  source.Source
	}{{"bare", bare}, {"five", v}} {
		b.Run(c.name, func(b *testing.B) { run(b, c.src, 1024) })
	}
}

// BenchmarkFilter gathers through a filter, which finds each record by counting bits.
func BenchmarkFilter(b *testing.B) {
	const n, width = 1 << 17, 784
	src := must(arrowio.FromSlices(arrowio.Slice("x", counted[uint8](n*width), width)))
	run(b, must(view.FilterFunc(src, func(k int64) bool { return k%8 > 0 })), 1024)
}

// BenchmarkConcat gathers from two datasets at random.
func BenchmarkConcat(b *testing.B) {
	const n, width = 1 << 17, 784
	src := must(arrowio.FromSlices(arrowio.Slice("x", counted[uint8](n*width), width)))
	run(b, must(view.Concat(must(view.Slice(src, 0, n/2)), must(view.Slice(src, n/2, n)))), 1024)
}

// BenchmarkWindow gathers windows of 64 rows of 4 and of 256 bytes.
func BenchmarkWindow(b *testing.B) {
	const n = 1 << 18
	for _, width := range []int{1, 64} {
		src := must(arrowio.FromSlices(arrowio.Slice("x", counted[float32](n*width), width)))
		v := must(view.Window(context.Background(), src, view.Windows{Length: 64, Stride: 1}))
		b.Run(fmt.Sprintf("%d bytes", 4*width), func(b *testing.B) { run(b, v, 256) })
	}
}

// BenchmarkStack gathers 40 columns of float32 as one field.
func BenchmarkStack(b *testing.B) {
	const n = 1 << 18
	var columns []arrowio.Values
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint(i))
		columns = append(columns, arrowio.Slice(names[i], counted[float32](n)))
	}
	run(b, must(view.Stack(must(arrowio.FromSlices(columns...)), view.Stacked{Name: "x", Columns: names})), 1024)
}

// run gathers whole rows of the first field.
func run(b *testing.B, src source.Source, rows int) { runFields(b, src, rows, 1) }

// runFields gathers whole rows of the first fields.
func runFields(b *testing.B, src source.Source, rows, fields int) {
	var parts []source.Part
	var jobs []source.Job
	size := 0
	for i := range fields {
		part := src.Schema().Whole(i)
		n := rows * src.Schema().Fields[i].RowBytes()
		parts, jobs, size = append(parts, part), append(jobs, source.Job{Part: i, Rows: [2]int{0, rows}, Dst: make([]byte, n)}), size+n
	}
	g, err := src.Gatherer(parts)
	if err != nil {
		b.Fatal(err)
	}
	order := permutation(int(src.Len()))
	b.SetBytes(int64(size))
	at := 0
	for b.Loop() {
		if at+rows > len(order) {
			at = 0
		}
		if err := g.Gather(b.Context(), source.Draw{}, order[at:at+rows], jobs); err != nil {
			b.Fatal(err)
		}
		at += rows
	}
}

// counted returns the numbers 0, 1, 2 and so on, so that each page has memory of its own.
func counted[T uint8 | int32 | float32](n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = T(i)
	}
	return list
}

// BenchmarkPack gathers packed rows of 2,048 tokens, and stored rows of the same bytes: the tokens alone,
// and all fields. The documents are long or short.
func BenchmarkPack(b *testing.B) {
	const length = 2048
	for _, mean := range []float64{700, 250} {
		n := int(42e6 / mean)
		src := logNormal(n, mean)
		for _, method := range []packing.Method{packing.BestFit, packing.Split} {
			v := must(view.Pack(b.Context(), src, "tokens", view.Packing{Options: packing.Options{Length: length, Method: method}}))
			rows := int(v.Len())
			plain := must(arrowio.FromSlices(arrowio.Slice("tokens", counted[int32](rows*length), length),
				arrowio.Slice("segment_ids", counted[int32](rows*length), length), arrowio.Slice("positions", counted[int32](rows*length), length)))
			for _, fields := range []int{1, 3} {
				name := fmt.Sprintf("documents of %v, %s, %d fields", mean, method, fields)
				b.Run(name+", packed", func(b *testing.B) { runFields(b, v, 256, fields) })
				b.Run(name+", stored", func(b *testing.B) { runFields(b, plain, 256, fields) })
			}
		}
	}
}

// logNormal returns n documents in memory. The logarithms of their lengths are normal.
func logNormal(n int, mean float64) source.Source {
	r := rand.New(rand.NewPCG(1, 2))
	lists := array.NewListBuilder(memory.NewGoAllocator(), arrow.PrimitiveTypes.Int32)
	for range n {
		lists.Append(true)
		for i := range max(1, int(mean*math.Exp(r.NormFloat64()-0.5))) {
			lists.ValueBuilder().(*array.Int32Builder).Append(int32(i))
		}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "tokens", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}}, nil)
	return must(records.New(schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{lists.NewArray()}, int64(n))}, records.Options{}))
}
