package decoded

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/formattest"
	"github.com/meshfeed/meshfeed/arrowio/internal/units/unitstest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// open opens a cache of eight units with one row each.
func open(t *testing.T, f formattest.Toy) *Cache {
	t.Helper()
	data := []byte(formattest.Magic)
	for i := range byte(8) {
		data = append(data, 1, i)
	}
	d := unitstest.Open(t, f, blobtest.Memory{"a.toy": data}, []string{"a.toy"}, func() {})
	return New(d.Files, d.Table.Calls, d.Life)
}

// decodeNumbers decodes the numbers of some units, as a gather does.
func decodeNumbers(ctx context.Context, c *Cache, batches ...int32) error {
	return c.Decode(ctx, batches, 0, false, func(i int, decoded *buffers.Decoded) error {
		if !bytes.Equal(decoded.Levels[0].Data, []byte{byte(batches[i]), 0, 0, 0}) {
			return errors.New("a row differs")
		}
		return nil
	})
}

// eight are the units of open.
var eight = []int32{0, 1, 2, 3, 4, 5, 6, 7}

// useProcessors sets the number of processors to n during a test.
func useProcessors(t *testing.T, n int) {
	was := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
}

// allFree checks that no decoding keeps a part of the budget.
func allFree(t *testing.T) {
	t.Helper()
	if err := budget.Acquire(t.Context(), budgetBytes); err != nil {
		t.Fatal(err)
	}
	budget.Release(budgetBytes)
}

// TestTooSmallCache: if gathers need eight units and the cache keeps six, each gather decodes
// about two, and not all.
func TestTooSmallCache(t *testing.T) {
	var computed atomic.Int32
	count := func(int, int64) error {
		computed.Add(1)
		return nil
	}
	const rounds = 20
	for _, ahead := range []bool{false, true} {
		computed.Store(0)
		c := open(t, formattest.Toy{Memory: 1, Weight: Bytes / 6, Decode: count})
		for range rounds {
			if ahead {
				c.DecodeAhead(eight, []int{0})
			}
			if err := decodeNumbers(t.Context(), c, eight...); err != nil {
				t.Fatal(err)
			}
		}
		// The decodings of a round may begin before one of its units was used.
		if n, most := int(computed.Load()), 8+3*(rounds-1); n < 8+2*(rounds-1) || n > most {
			t.Errorf("%d decodings in %d rounds of eight units, want at most %d; ahead: %v", n, rounds, most, ahead)
		}
	}
}

// TestMovingWindow: gathers that need a few neighboring units decode each unit once in a pass.
func TestMovingWindow(t *testing.T) {
	var computed atomic.Int32
	c := open(t, formattest.Toy{Memory: 1, Weight: Bytes / 3, Decode: func(int, int64) error { computed.Add(1); return nil }})
	for i := range int32(14) { // two passes
		if err := decodeNumbers(t.Context(), c, i%7, i%7+1); err != nil {
			t.Fatal(err)
		}
	}
	if n := computed.Load(); n != 16 {
		t.Errorf("%d decodings of eight units in two passes", n)
	}
}

// TestDecodesInParallel: no decoding ends before one more than there are processors have begun.
func TestDecodesInParallel(t *testing.T) {
	useProcessors(t, 3)
	var begun atomic.Int32
	four := make(chan struct{})
	d := open(t, formattest.Toy{Memory: 1, Decode: func(int, int64) error {
		if begun.Add(1) == 4 {
			close(four)
		}
		<-four
		return nil
	}})
	if err := decodeNumbers(t.Context(), d, eight...); err != nil || begun.Load() != 8 {
		t.Errorf("%d decodings, %v", begun.Load(), err)
	}
	allFree(t)
}

// TestBudget: decodings of several gathers and datasets that together need more than the
// budget run one after the other.
func TestBudget(t *testing.T) {
	useProcessors(t, 8)
	var now, most, all atomic.Int32
	hook := func(int, int64) error {
		all.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		runtime.Gosched()
		now.Add(-1)
		return nil
	}
	a, b := open(t, formattest.Toy{Memory: budgetBytes/2 + 1, Decode: hook}), open(t, formattest.Toy{Memory: budgetBytes, Decode: hook})
	err := guard.Parallel(t.Context(), "test", 4, 4, func(i int) error { return decodeNumbers(t.Context(), []*Cache{a, b}[i%2], eight...) })
	if err != nil || all.Load() != 16 || most.Load() != 1 {
		t.Errorf("%d decodings, %d at a time, %v", all.Load(), most.Load(), err)
	}
	allFree(t)
}

// TestLargerThanEstimated: decodings that take more than their estimate run again with the
// whole budget, while other gathers wait for them and hold parts of it.
func TestLargerThanEstimated(t *testing.T) {
	useProcessors(t, 4)
	var mu sync.Mutex
	estimates := map[int][]int64{}
	d := open(t, formattest.Toy{Memory: budgetBytes / 4, Decode: func(unit int, estimate int64) error {
		mu.Lock()
		defer mu.Unlock()
		estimates[unit] = append(estimates[unit], estimate)
		if unit%3 == 0 && estimate < budgetBytes {
			return format.ErrEstimate
		}
		return nil
	}})
	if err := guard.Parallel(t.Context(), "test", 6, 6, func(int) error { return decodeNumbers(t.Context(), d, eight...) }); err != nil {
		t.Error(err)
	}
	for unit, list := range estimates {
		if last := list[len(list)-1]; unit%3 == 0 && last != budgetBytes || unit%3 != 0 && last != budgetBytes/4 {
			t.Errorf("unit %d was decoded with %v", unit, list)
		}
	}
	allFree(t)
}

// TestEndlessEstimates: a format that asks for more than all memory is at fault.
func TestEndlessEstimates(t *testing.T) {
	c := open(t, formattest.Toy{Decode: func(int, int64) error { return format.ErrEstimate }})
	if err := decodeNumbers(t.Context(), c, 0); status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	if _, err := c.Once(t.Context(), 0, c.files.Fields[0], false); status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	allFree(t)
}

// TestLowestErrorOfDecoding: a gather returns the error of the first unit that fails, even if
// a later one has failed before.
func TestLowestErrorOfDecoding(t *testing.T) {
	useProcessors(t, 4)
	failed := make(chan struct{})
	d := open(t, formattest.Toy{Memory: 1, Decode: func(unit int, _ int64) error {
		switch unit {
		case 1:
			<-failed
			return errors.New("1")
		case 3:
			close(failed)
			return errors.New("3")
		}
		return nil
	}})
	if err := decodeNumbers(t.Context(), d, eight...); err == nil || err.Error() != "arrowio: a.toy: 1" {
		t.Errorf("got %v", err)
	}
	allFree(t)
}

// TestCancelledWaitForTheBudget: a gather that waits for the budget ends with its context.
func TestCancelledWaitForTheBudget(t *testing.T) {
	d := open(t, formattest.Toy{Memory: 1, Decode: func(int, int64) error { return nil }})
	if err := budget.Acquire(t.Context(), budgetBytes); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- decodeNumbers(ctx, d, eight...) }()
	cancel()
	if err := <-ended; status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	budget.Release(budgetBytes)
	if err := decodeNumbers(t.Context(), d, eight...); err != nil {
		t.Error(err)
	}
	allFree(t)
}
