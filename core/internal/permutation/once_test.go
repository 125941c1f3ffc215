package permutation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/internal/cpu"
	"github.com/meshfeed/meshfeed/tests/random"
)

// kernels are the levels that this processor runs, beyond plain Go.
func kernels(t testing.TB) (levels []cpu.Level) {
	for l := cpu.None + 1; l <= cpu.Best(); l++ {
		levels = append(levels, l)
	}
	if len(levels) == 0 {
		t.Skip("this processor has no kernel but the portable one")
	}
	return levels
}

// testKernels compares the kernels with plain Go for one network: rectangles of
// any shape, elements at the ends of its rows and of the whole, keys of few
// bits, and n on both sides of what comes out.
func testKernels(t *testing.T, r *rand.Rand) {
	side := func(least uint64) uint64 { return least + r.Uint64N(1<<30-least+1)>>r.UintN(31) }
	f := feistel{a: side(1), b: side(lanes - 1)}
	for i := range f.keys {
		f.keys[i] = r.Uint64() >> (r.UintN(2) * r.UintN(64))
	}
	h := []uint64{0, f.a - 1, r.Uint64N(f.a)}[r.IntN(3)]
	column := []uint64{0, f.b - 1 - r.Uint64N(lanes-1), r.Uint64N(f.b)}[r.IntN(3)]
	var want, got [lanes]int64
	f.oncePortable(&want, h, column)
	f.n = uint64(want[r.IntN(lanes)]) + r.Uint64N(2)
	outside := f.oncePortable(&want, h, column)
	for _, f.kernel = range kernels(t) {
		if o := f.onceKernel(&got, h, column); got != want || o != outside {
			t.Fatalf("%v, %d × %d, n %d, keys %x, from row %d, column %d: it gives\n%d, %v\nand plain Go\n%d, %v",
				f.kernel, f.a, f.b, f.n, f.keys, h, column, got, o, want, outside)
		}
	}
}

func TestKernels(t *testing.T) {
	r := random.New(t)
	for range 50_000 {
		testKernels(t, r)
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { testKernels(t, random.From(seed)) })
}

// The rectangle of the smallest network is wide enough for the kernels, which
// let at most one of its rows end among lanes elements.
func TestColumns(t *testing.T) {
	if f := newFeistel(TableSize+1, [2]uint64{}); f.b < lanes-1 {
		t.Errorf("the smallest rectangle has %d columns, and %d elements go together", f.b, lanes)
	}
}

// A half has at most 20 bits, of which the kernel needs 30.
func TestHalves(t *testing.T) {
	for bits := range 41 {
		for d := int64(-1); d <= 1; d++ {
			n := min(max(1, int64(1)<<bits+d), MaxSize)
			if f := newFeistel(n, [2]uint64{}); f.a > 1<<20+1 || f.b > 1<<20 || f.a*f.b < f.n {
				t.Errorf("size %d: the rectangle is %d × %d", n, f.a, f.b)
			}
		}
	}
}

// Fill gives the same by all kernels, also where elements walk.
func TestFillByKernels(t *testing.T) {
	for _, n := range []int64{TableSize + 1, 5000, 1<<33 - 7} {
		f := newFeistel(n, [2]uint64{3, 4})
		f.kernel = cpu.None
		want := make([]int64, 4001)
		f.Fill(want, n-4001)
		for _, f.kernel = range kernels(t) {
			got := make([]int64, 4001)
			for from := 0; from < len(got); { // in pieces of all lengths
				to := min(len(got), from+from%71+1)
				f.Fill(got[from:to], n-4001+int64(from))
				from = to
			}
			if !slices.Equal(got, want) {
				t.Errorf("size %d: %v gives %d, plain Go %d", n, f.kernel, got, want)
			}
		}
	}
}

func BenchmarkOnce(b *testing.B) {
	f := newFeistel(1_000_000, [2]uint64{1, 2})
	for f.kernel = range cpu.Best() + 1 {
		b.Run(f.kernel.String(), func(b *testing.B) {
			var dst [lanes]int64
			for b.Loop() {
				f.once(&dst, 3, 4)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lanes, "ns/position")
		})
	}
}
