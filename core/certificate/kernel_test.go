package certificate

import (
	"math"
	"testing"

	"github.com/meshfeed/meshfeed/core/internal/cpu"
	"github.com/meshfeed/meshfeed/tests/random"
)

// testKernels compares what the kernels count with what plain Go counts.
func testKernels(t *testing.T, e Epoch, before Tally, position int64, records []int64) {
	if cpu.Best() == cpu.None {
		t.Skip("this processor has no kernel but the portable one")
	}
	want := before
	e.count(&want, position, records)
	for level := cpu.AVX2; level <= cpu.Best(); level++ {
		got := before
		e.countBy(level, &got, position, records)
		if got != want {
			t.Errorf("%d rows: %v gives %+v, plain Go %+v", len(records), level, got, want)
		}
	}
}

// Any number of rows, with and without padding, is added to what there is.
func TestCountKernels(t *testing.T) {
	r := random.New(t)
	for n := range 300 {
		records := make([]int64, n)
		for i := range records {
			records[i] = []int64{0, r.Int64N(1 << 40), math.MaxInt64 - r.Int64N(9)}[r.IntN(3)]
		}
		if n > 0 && r.IntN(3) == 0 {
			records[r.IntN(n)] = -1
		}
		before := Tally{Rows: 7, Digest: Digest{r.Uint64(), math.MaxUint64}}
		testKernels(t, EpochOf(r.Int64()), before, r.Int64(), records)
	}
}

// More rows than a call of the kernel takes.
func TestCountManyRows(t *testing.T) {
	records := make([]int64, 3*callRows+5)
	for i := range records {
		records[i] = int64(i) * 77
	}
	records[2*callRows] = -1
	testKernels(t, EpochOf(1), Tally{}, 5, records)
}

func BenchmarkKernels(b *testing.B) {
	records := make([]int64, 4096)
	for i := range records {
		records[i] = int64(i * 77)
	}
	e := EpochOf(1)
	for level := range cpu.Best() + 1 {
		b.Run(level.String(), func(b *testing.B) {
			var t Tally
			for b.Loop() {
				e.countBy(level, &t, 5, records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(records)), "ns/row")
		})
	}
}
