package certificate

import (
	"math"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// The kernel counts as its twin in plain Go does, for any number of rows, with
// and without padding, and adds to what there is.
func TestCountKernel(t *testing.T) {
	if !hasKernel() {
		t.Skip("this processor has no kernel but the portable one")
	}
	r := random.New(t)
	for n := range 300 {
		records := make([]int64, n)
		for i := range records {
			records[i] = []int64{0, r.Int64N(1 << 40), math.MaxInt64 - r.Int64N(9)}[r.IntN(3)]
		}
		if n > 0 && r.IntN(3) == 0 {
			records[r.IntN(n)] = -1
		}
		e, position := EpochOf(r.Int64()), r.Int64()
		got := Tally{Rows: 7, Digest: Digest{r.Uint64(), math.MaxUint64}}
		want := got
		e.Count(&got, position, records)
		e.count(&want, position, records)
		if got != want {
			t.Fatalf("%d rows: the kernel gives %+v, plain Go %+v", n, got, want)
		}
	}
}

// More rows than a call of the kernel takes.
func TestCountManyRows(t *testing.T) {
	records := make([]int64, 3*callRows+5)
	for i := range records {
		records[i] = int64(i) * 77
	}
	records[2*callRows] = -1
	var got, want Tally
	e := EpochOf(1)
	e.Count(&got, 5, records)
	e.count(&want, 5, records)
	if got != want {
		t.Errorf("the kernel gives %+v, plain Go %+v", got, want)
	}
}
