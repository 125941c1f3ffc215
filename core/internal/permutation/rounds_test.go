package permutation

import (
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// testRounds compares the assembly with its portable twin for one rectangle,
// halves at both ends of their ranges among them.
func testRounds(t *testing.T, n int64, r *rand.Rand) {
	f := newFeistel(n, [2]uint64{r.Uint64(), r.Uint64()})
	for i := range f.keys {
		f.keys[i] >>= r.UintN(2) * r.UintN(64)
	}
	var left, right [lanes]uint64
	for j := range left {
		left[j] = []uint64{0, f.a - 1, r.Uint64N(f.a)}[r.IntN(3)]
		right[j] = []uint64{0, f.b - 1, r.Uint64N(f.b)}[r.IntN(3)]
	}
	wantLeft, wantRight := left, right
	roundsPortable(&wantLeft, &wantRight, &f.keys, f.a, f.b)
	roundsAVX2(&left, &right, &f.keys, f.a, f.b)
	if left != wantLeft || right != wantRight {
		t.Fatalf("size %d, keys %x: the kernel gives\n%d\n%d\nand its twin\n%d\n%d", n, f.keys, left, right, wantLeft, wantRight)
	}
}

func TestRounds(t *testing.T) {
	if !hasKernel() {
		t.Skip("this processor has no kernel but the portable one")
	}
	r := random.New(t)
	for n := int64(1); n <= MaxSize; n *= 2 {
		for range 500 {
			testRounds(t, max(1, n-1+r.Int64N(3)&1), r)
			testRounds(t, 1+r.Int64N(n), r)
		}
	}
}

func FuzzRounds(f *testing.F) {
	f.Add(int64(TableSize), uint64(1))
	f.Fuzz(func(t *testing.T, n int64, seed uint64) {
		if !hasKernel() {
			t.Skip("this processor has no kernel but the portable one")
		}
		testRounds(t, 1+(n&(MaxSize-1)), random.From(seed))
	})
}

// What stands before and behind the rounds agrees with its twins too: rows of
// the rectangle that end at any lane, and elements on both sides of n.
func TestSplitAndJoin(t *testing.T) {
	if !hasKernel() {
		t.Skip("this processor has no kernel but the portable one")
	}
	r := random.New(t)
	for range 20_000 {
		f := newFeistel(TableSize+1+r.Int64N(MaxSize-TableSize)>>r.UintN(28), [2]uint64{})
		h, row := r.Uint64N(f.a), r.Uint64N(f.b)
		if r.UintN(2) == 0 {
			row = f.b - 1 - r.Uint64N(lanes+2)
		}
		var left, right, wantLeft, wantRight [lanes]uint64
		splitPortable(&wantLeft, &wantRight, f.b, h, row)
		splitAVX2(&left, &right, f.b, h, row)
		if left != wantLeft || right != wantRight {
			t.Fatalf("%d columns, from row %d, column %d on: the kernel gives\n%d\n%d\nand its twin\n%d\n%d", f.b, h, row, left, right, wantLeft, wantRight)
		}
		n := h*f.b + row + r.Uint64N(2*lanes)
		var got, want [lanes]int64
		outside, wantOutside := joinAVX2(&got, &left, &right, f.b, n), joinPortable(&want, &left, &right, f.b, n)
		if got != want || outside != wantOutside {
			t.Fatalf("%d elements of rows of %d: the kernel gives %v, %d\nand its twin %v, %d", n, f.b, outside, got, wantOutside, want)
		}
	}
}

// The rectangle of the smallest network is wide enough for the kernels, which
// let at most one of its rows end among lanes elements.
func TestColumns(t *testing.T) {
	if f := newFeistel(TableSize+1, [2]uint64{}); f.b < lanes {
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

// Fill gives the same by both kernels, also where elements walk.
func TestFillPortable(t *testing.T) {
	for _, n := range []int64{TableSize + 1, 5000, 1<<33 - 7} {
		f := newFeistel(n, [2]uint64{3, 4})
		twin := *f
		twin.native = false
		got, want := make([]int64, 4001), make([]int64, 4001)
		for from := 0; from < len(got); { // in pieces of all lengths
			to := min(len(got), from+from%71+1)
			f.Fill(got[from:to], n-4001+int64(from))
			from = to
		}
		twin.Fill(want, n-4001)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("size %d, position %d: the kernel gives %d, its twin %d", n, n-4001+int64(i), got[i], want[i])
			}
		}
	}
}

func BenchmarkRounds(b *testing.B) {
	f := newFeistel(1_000_000, [2]uint64{1, 2})
	for name, do := range map[string]func(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64){
		"AVX2": roundsAVX2, "portable": roundsPortable,
	} {
		b.Run(name, func(b *testing.B) {
			if name == "AVX2" && !hasKernel() {
				b.Skip("this processor has no such kernel")
			}
			var l, r [lanes]uint64
			for b.Loop() {
				do(&l, &r, &f.keys, f.a, f.b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lanes, "ns/position")
		})
	}
}
