package table

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/block"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestKernels compares the kernels with plain Go, for every way to find the batch
// of a record. The bytes behind the destination must not change.
func TestKernels(t *testing.T) {
	if !hasKernels() {
		t.Skip("this processor has no AVX2 or no BMI2")
	}
	r, ran := random.New(t), map[string]int{}
	for range 300 {
		x, kind := randomIndex(r)
		for _, size := range []int{4, 8, 16, 32} {
			records := make([]int64, r.IntN(40)+r.IntN(2)*callRows)
			for i := range records {
				records[i] = r.Int64N(x.Len())
			}
			e, keep := scattered(r, x, records, size)
			got, want := make([]byte, len(records)*size+16), make([]byte, len(records)*size+16)
			to := unsafe.Pointer(&got[0])
			ran[kind]++
			if copied := copyFast(to, size, e); copied != (kind != "uneven") {
				t.Fatalf("a kernel for %s batches: %v", kind, copied)
			} else if !copied {
				continue
			}
			e.entry = make([]uint32, len(records))
			x.locate(records, e.entry)
			e.copy(unsafe.Pointer(&want[0]), size)
			if !slices.Equal(got, want) {
				t.Fatalf("%s batches %v, %d elements of %d bytes differ", kind, x.first, len(records), size)
			}
			runtime.KeepAlive(keep)
		}
	}
	for _, kind := range []string{"single", "even", "uneven"} {
		if ran[kind] == 0 {
			t.Errorf("no %s batches were tried", kind)
		}
	}
}

// randomIndex makes the index of one batch, of several of one size, or of several
// of different sizes, for which there are no kernels.
func randomIndex(r *rand.Rand) (x *Index, kind string) {
	rows := make([]int64, 3+r.IntN(30))
	size := 1 + r.Int64N(300)
	for i := range rows {
		rows[i] = size
	}
	switch r.IntN(4) {
	case 0:
		return NewIndex(rows[:1]), "single"
	case 1:
		rows[len(rows)-1] = 1 + r.Int64N(size)
	case 2:
		for i := range rows {
			rows[i] += r.Int64N(200)
		}
	default:
		rows[0], rows[1] = 10_000, 1
	}
	if x = NewIndex(rows); x.inverse != 0 {
		return x, "even"
	}
	return x, "uneven"
}

// scattered allocates the rows of every batch of an index.
func scattered(r *rand.Rand, x *Index, records []int64, size int) (e elements, keep [][]byte) {
	e = elements{records: records, index: x, stride: uintptr(size)}
	for p := range x.entries() {
		batch := make([]byte, int(x.first[p+1]-x.first[p])*size)
		for i := range min(len(batch), 4096) {
			batch[i], batch[len(batch)-1-i] = byte(r.Uint32()), byte(r.Uint32())
		}
		keep = append(keep, batch)
		e.origin = append(e.origin, block.Address(batch)-uintptr(x.first[p]*int64(size)))
	}
	e.origin = append(e.origin, uintptr(size))
	return e, keep
}
