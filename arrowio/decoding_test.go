package arrowio

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
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// hooked is the format toy with an estimate, and with a function that each decoding of the column
// number calls first with its estimate. If that returns format.ErrEstimate, the next estimate is
// the whole budget. Values, if set, replaces its values.
type hooked struct {
	toy
	bytes  int64
	weight int64 // of what is decoded of the column number, in the cache; 0 for its bytes
	hook   func(unit int, estimate int64) error
	values func(data []byte) []byte
}

func (h hooked) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
	c, err := h.toy.Open(ctx, content)
	if err != nil {
		return nil, err
	}
	return &hookedFile{toyFile: c.(*toyFile), h: h}, nil
}

type hookedFile struct {
	*toyFile
	h     hooked
	large sync.Map // of units
}

func (c *hookedFile) Decoding(ctx context.Context, i, column int, field *arrowtype.Field) (format.Decoding, error) {
	toy, err := c.toyFile.Decoding(ctx, i, column, field)
	d := format.Decoding{Memory: c.h.bytes}
	if _, large := c.large.Load(i); large {
		d.Memory = budgetBytes
	}
	d.Run = func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
		if column == 0 {
			if err := c.h.hook(i, d.Memory); err != nil {
				if errors.Is(err, format.ErrEstimate) {
					c.large.Store(i, true)
				}
				return nil, err
			}
		}
		out, err := toy.Run(ctx, lists)
		if column == 0 && err == nil && c.h.values != nil {
			out.Levels[0].Data = c.h.values(out.Levels[0].Data)
		}
		if column == 0 && err == nil && c.h.weight > 0 {
			out.Bytes = c.h.weight
		}
		return out, err
	}
	return d, err
}

// openHooked opens a dataset of eight units with one row each.
func openHooked(t *testing.T, bytes int64, hook func(unit int, estimate int64) error) *Dataset {
	t.Helper()
	return openWeighed(t, hooked{bytes: bytes, hook: hook})
}

func openWeighed(t *testing.T, h hooked) *Dataset {
	t.Helper()
	was := formats
	formats = []format.Format{h}
	defer func() { formats = was }()
	data := []byte(toyMagic)
	for i := range byte(8) {
		data = append(data, 1, i)
	}
	d, err := OpenFiles(t.Context(), []string{"a.toy"}, Options{Opener: blobtest.Memory{"a.toy": data}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// gatherNumbers gathers the numbers of all rows in reverse.
func gatherNumbers(ctx context.Context, d *Dataset) error {
	g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
	if err != nil {
		return err
	}
	defer g.Close()
	dst := make([]byte, 8*4)
	if err := g.Gather(ctx, source.Draw{}, []int64{7, 6, 5, 4, 3, 2, 1, 0}, []source.Job{{Rows: [2]int{0, 8}, Dst: dst}}); err != nil {
		return err
	}
	for i := range byte(8) {
		if !bytes.Equal(dst[4*i:4*i+4], []byte{7 - i, 0, 0, 0}) {
			return errors.New("a row differs")
		}
	}
	return nil
}

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

// TestTooSmallCache: gathers that need eight units, of which the cache keeps six, decode about two
// each time, and not all.
func TestTooSmallCache(t *testing.T) {
	var made atomic.Int32
	count := func(int, int64) error {
		made.Add(1)
		return nil
	}
	const rounds = 20
	for _, ahead := range []bool{false, true} {
		made.Store(0)
		d := openWeighed(t, hooked{bytes: 1, weight: cacheBytes / 6, hook: count})
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
		if err != nil {
			t.Fatal(err)
		}
		records, dst := []int64{7, 6, 5, 4, 3, 2, 1, 0}, make([]byte, 8*4)
		for range rounds {
			if ahead {
				g.Ahead(source.Draw{}, records)
			}
			if err := g.Gather(t.Context(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, 8}, Dst: dst}}); err != nil {
				t.Fatal(err)
			}
		}
		// The decodings of a round may begin before one of its units was used.
		if n, most := int(made.Load()), 8+3*(rounds-1); n < 8+2*(rounds-1) || n > most {
			t.Errorf("%d decodings in %d rounds of eight units, want at most %d; ahead: %v", n, rounds, most, ahead)
		}
		_ = g.Close()
	}
}

// TestMovingWindow: gathers that need a few neighboring units decode each unit once in a pass.
func TestMovingWindow(t *testing.T) {
	var made atomic.Int32
	d := openWeighed(t, hooked{bytes: 1, weight: cacheBytes / 3, hook: func(int, int64) error { made.Add(1); return nil }})
	g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	dst := make([]byte, 2*4)
	for i := range int64(14) { // two passes
		if err := g.Gather(t.Context(), source.Draw{}, []int64{i % 7, i%7 + 1}, []source.Job{{Rows: [2]int{0, 2}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := made.Load(); n != 16 {
		t.Errorf("%d decodings of eight units in two passes", n)
	}
}

// TestDecodesInParallel: no decoding ends before one more than there are processors have begun.
func TestDecodesInParallel(t *testing.T) {
	useProcessors(t, 3)
	var begun atomic.Int32
	four := make(chan struct{})
	d := openHooked(t, 1, func(int, int64) error {
		if begun.Add(1) == 4 {
			close(four)
		}
		<-four
		return nil
	})
	if err := gatherNumbers(t.Context(), d); err != nil || begun.Load() != 8 {
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
	a, b := openHooked(t, budgetBytes/2+1, hook), openHooked(t, budgetBytes, hook)
	err := guard.Parallel(t.Context(), "test", 4, 4, func(i int) error { return gatherNumbers(t.Context(), []*Dataset{a, b}[i%2]) })
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
	d := openHooked(t, budgetBytes/4, func(unit int, estimate int64) error {
		mu.Lock()
		defer mu.Unlock()
		estimates[unit] = append(estimates[unit], estimate)
		if unit%3 == 0 && estimate < budgetBytes {
			return format.ErrEstimate
		}
		return nil
	})
	if err := guard.Parallel(t.Context(), "test", 6, 6, func(int) error { return gatherNumbers(t.Context(), d) }); err != nil {
		t.Error(err)
	}
	for unit, list := range estimates {
		if last := list[len(list)-1]; unit%3 == 0 && last != budgetBytes || unit%3 != 0 && last != budgetBytes/4 {
			t.Errorf("unit %d was decoded with %v", unit, list)
		}
	}
	allFree(t)
}

// TestLowestErrorOfDecoding: a gather returns the error of the first unit that fails, even if
// a later one has failed before.
func TestLowestErrorOfDecoding(t *testing.T) {
	useProcessors(t, 4)
	failed := make(chan struct{})
	d := openHooked(t, 1, func(unit int, _ int64) error {
		switch unit {
		case 1:
			<-failed
			return errors.New("1")
		case 3:
			close(failed)
			return errors.New("3")
		}
		return nil
	})
	if err := gatherNumbers(t.Context(), d); err == nil || err.Error() != "arrowio: a.toy: 1" {
		t.Errorf("got %v", err)
	}
	allFree(t)
}

// TestCancelledWaitForTheBudget: a gather that waits for the budget ends with its context.
func TestCancelledWaitForTheBudget(t *testing.T) {
	d := openHooked(t, 1, func(int, int64) error { return nil })
	if err := budget.Acquire(t.Context(), budgetBytes); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- gatherNumbers(ctx, d) }()
	cancel()
	if err := <-ended; status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	budget.Release(budgetBytes)
	if err := gatherNumbers(t.Context(), d); err != nil {
		t.Error(err)
	}
	allFree(t)
}

// TestLikelyBytes compares what metadata say of the decoded bytes of ragged fields with them.
func TestLikelyBytes(t *testing.T) {
	for _, path := range []string{"testdata/parquet/ragged.parquet", "testdata/parquet/ragged_plain.parquet", "../internal/arrowmeta/testdata/lz4.arrow"} {
		d, err := OpenFiles(t.Context(), []string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, field := range d.table.Fields {
			likely, real := int64(0), int64(0)
			for unit := range d.files[0].Units {
				n := d.likelyBytes(d.files[0], unit, i)
				decoded, err := d.decodeOnce(t.Context(), int32(unit), field, d.columns[i], false)
				if err != nil {
					t.Fatal(err)
				}
				likely, real = likely+n, real+decoded.Bytes
			}
			if nulls := field.Name == "null deep"; field.Ragged > 0 && !nulls && (likely < real/2-64 || likely > 2*real+64) {
				t.Errorf("%s: field %q has %d bytes decoded, and likely %d", path, field.Name, real, likely)
			}
			if field.Ragged > 0 && (d.exceeds([]int{i}, likely) || !d.exceeds([]int{i}, likely-1)) {
				t.Errorf("%s: field %q of %d bytes exceeds as many, or not fewer", path, field.Name, likely)
			}
		}
		_ = d.Close()
	}
}
