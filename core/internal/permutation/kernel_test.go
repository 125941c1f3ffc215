package permutation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// needKernel skips a test on a machine without the kernel.
func needKernel(t testing.TB) {
	if !haveKernel() {
		t.Skip("this processor has no kernel")
	}
}

// testKernel compares the kernel with plain Go for a random network: rectangles
// of any shape, elements at the ends of rows and of the rectangle, keys of few
// bits, and n equal to an image or to the next number.
func testKernel(t *testing.T, r *rand.Rand) {
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
	if o := f.onceKernel(&got, h, column); got != want || o != outside {
		t.Fatalf("%d × %d, n %d, keys %x, from row %d, column %d: the kernel computes\n%d, %v\nand plain Go\n%d, %v",
			f.a, f.b, f.n, f.keys, h, column, got, o, want, outside)
	}
}

func TestKernel(t *testing.T) {
	needKernel(t)
	r := random.New(t)
	for range 50_000 {
		testKernel(t, r)
	}
}

func FuzzKernel(f *testing.F) {
	needKernel(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { testKernel(t, random.From(seed)) })
}

// The rectangle of the smallest network is wide enough for the kernel: at most
// one row ends within the lanes.
func TestColumns(t *testing.T) {
	if f := newFeistel(TableSize+1, [2]uint64{}); f.b < lanes-1 {
		t.Errorf("the smallest rectangle has %d columns, but there are %d lanes", f.b, lanes)
	}
}

// A half has at most 20 bits. The kernel allows 30.
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

// Fill returns the same with and without the kernel, also for elements that walk.
func TestFillByKernel(t *testing.T) {
	needKernel(t)
	for _, n := range []int64{TableSize + 1, 5000, 1<<33 - 7} {
		f := newFeistel(n, [2]uint64{3, 4})
		f.kernel = false
		want, got := make([]int64, 4001), make([]int64, 4001)
		f.Fill(want, n-4001)
		f.kernel = true
		for from := 0; from < len(got); { // in pieces of all lengths
			to := min(len(got), from+from%71+1)
			f.Fill(got[from:to], n-4001+int64(from))
			from = to
		}
		if !slices.Equal(got, want) {
			t.Errorf("size %d: the kernel computes %d, plain Go %d", n, got, want)
		}
	}
}

func BenchmarkOnce(b *testing.B) {
	f := newFeistel(1_000_000, [2]uint64{1, 2})
	for _, f.kernel = range []bool{false, haveKernel()} {
		b.Run(fmt.Sprintf("kernel=%t", f.kernel), func(b *testing.B) {
			var dst [lanes]int64
			for b.Loop() {
				f.once(&dst, 3, 4)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lanes, "ns/position")
		})
	}
}
