package view_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
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
func run(b *testing.B, src source.Source, rows int) {
	g, err := src.Gatherer([]source.Part{src.Schema().Whole(0)})
	if err != nil {
		b.Fatal(err)
	}
	order := permutation(int(src.Len()))
	dst := make([]byte, rows*src.Schema().Fields[0].RowBytes())
	b.SetBytes(int64(len(dst)))
	at := 0
	for b.Loop() {
		if at+rows > len(order) {
			at = 0
		}
		if err := g.Gather(b.Context(), source.Draw{}, order[at:at+rows], []source.Job{{Rows: [2]int{0, rows}, Dst: dst}}); err != nil {
			b.Fatal(err)
		}
		at += rows
	}
}

// counted returns the numbers 0, 1, 2 and so on, so that each page has memory of its own.
func counted[T uint8 | float32](n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = T(i)
	}
	return list
}
