package loader_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestErrorsInOrder(t *testing.T) {
	boom := status.New(status.DataLoss, "disk", "sector 7 is unreadable").WithHint("replace the disk").With("path", "a.arrow")
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		broken := true
		src.Hook = func(_ context.Context, records []int64) error {
			if broken && records[0] == 16 {
				return boom
			}
			return nil
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: 4})
		next(t, l)
		synctest.Wait() // the error is ready, after a batch
		next(t, l)
		for range 2 {
			_, err := l.Next(t.Context())
			wantError(t, err, status.DataLoss, "loader: step 2 of epoch 0: sector 7 is unreadable; replace the disk")
			if e := err.(*status.Error); e.Attr("path") != "a.arrow" || e.Attr("step") != int64(2) || !errors.Is(err, boom) {
				t.Errorf("attributes are missing: %v", e.Attrs)
			}
			if s := l.State(); s.Position != 16 {
				t.Errorf("the cursor moved to %v", s)
			}
		}
		broken = false
		if p := next(t, l); p.Index != 2 {
			t.Errorf("got step %d after the failure, want 2", p.Index)
		}
	})
}

// Seek drops an error. Batches at the new cursor are built ahead at once.
func TestSeekFromFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(_ context.Context, records []int64) error {
			if records[0] == 16 {
				return status.New(status.DataLoss, "disk", "sector 7 is unreadable")
			}
			return nil
		}
		for _, asked := range []bool{false, true} {
			l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: 3})
			next(t, l)
			next(t, l)
			synctest.Wait() // the error is ready
			if asked {
				if _, err := l.Next(t.Context()); status.CodeOf(err) != status.DataLoss {
					t.Errorf("got %v", err)
				}
			}
			if err := l.Seek(batch.Cursor{Position: 40}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if n := l.Stats().Queued; n != 3 {
				t.Errorf("%d batches are ready after Seek, want 3", n)
			}
			if p := next(t, l); p.Position != 40 {
				t.Errorf("got %+v", p)
			}
		}
	})
}

func TestPanicBecomesError(t *testing.T) {
	for _, workers := range []int{1, 2} {
		src := digits(80)
		src.Hook = func(_ context.Context, records []int64) error {
			if slices.Contains(records, 19) {
				panic("the worker crashed")
			}
			return nil
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Workers: workers})
		other := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8))})
		next(t, l)
		next(t, l)
		_, err := l.Next(t.Context())
		wantError(t, err, status.Internal, "loader: step 2 of epoch 0: panic: the worker crashed; "+
			"this is a bug in meshfeed: please report it with the file and the options that led here")
		if err := l.Seek(batch.Cursor{Position: 24}); err != nil {
			t.Error(err)
		}
		next(t, l) // another loader is not affected
		next(t, other)
	}
}

// If one of several workers fails, the others are canceled. The result is the error
// of the worker that failed.
func TestWorkersFailTogether(t *testing.T) {
	for row := range int64(4) {
		src := digits(80)
		src.Hook = func(ctx context.Context, records []int64) error {
			if slices.Contains(records, row) {
				return status.New(status.DataLoss, "disk", "sector 7 is unreadable")
			}
			<-ctx.Done()
			return ctx.Err()
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Workers: 4})
		_, err := l.Next(t.Context())
		wantError(t, err, status.DataLoss, "loader: step 0 of epoch 0: sector 7 is unreadable")
	}
}

// badAllocator fails or panics from the third batch on.
type badAllocator struct {
	heap    *batch.Heap
	n       int
	panics  bool
	commits bool
}

func (a *badAllocator) Alloc(blocks []batch.Block) (batch.Memory, error) {
	a.n++
	m, err := a.heap.Alloc(blocks)
	if a.n < 3 || err != nil {
		return m, err
	}
	if a.commits {
		return badMemory{m}, nil
	}
	defer m.Free()
	if a.panics {
		panic("no memory")
	}
	return nil, status.New(status.ResourceExhausted, "pool", "the pool is empty")
}

type badMemory struct{ batch.Memory }

func (badMemory) Commit(context.Context) error {
	return status.New(status.IO, "device", "the transfer did not begin")
}

func TestAllocatorFails(t *testing.T) {
	for _, c := range []struct {
		a    badAllocator
		code status.Code
		text string
	}{
		{badAllocator{}, status.ResourceExhausted, "loader: step 2 of epoch 0: the pool is empty"},
		{badAllocator{panics: true}, status.Internal, "loader: step 2 of epoch 0: panic: no memory; this is a bug in meshfeed: please report it with the file and the options that led here"},
		{badAllocator{commits: true}, status.IO, "loader: step 2 of epoch 0: the transfer did not begin"},
	} {
		c.a.heap = batch.NewHeap(2)
		l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Allocator: &c.a})
		next(t, l)
		next(t, l)
		_, err := l.Next(t.Context())
		wantError(t, err, c.code, c.text)
		closeLoader(t, l)
		if n, bytes := c.a.heap.Live(); n != 0 || bytes != 0 {
			t.Errorf("%d batches of %d bytes are not freed", n, bytes)
		}
	}
}

func TestMaxHostBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lay := newLayout(t, document(8))
		slab := int64(2*64 + 64) // two half images of 64 bytes, four labels
		_, err := loader.New(digits(80), loader.Options{Layout: lay, MaxHostBytes: slab - 1})
		wantError(t, err, status.ResourceExhausted, "loader: one batch takes 192 bytes in process 0, but Options.MaxHostBytes is 191; raise it: reading ahead takes 2 batches more")

		l := newLoader(t, digits(80), loader.Options{Layout: lay, MaxHostBytes: 3 * slab, Prefetch: 2, Epochs: 1})
		var kept []*batch.Batch
		for range 3 { // fewer batches are built ahead if the consumer holds some
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, b)
			synctest.Wait()
			if s := l.Stats(); s.LiveBytes != 3*slab {
				t.Errorf("%d bytes live, want %d", s.LiveBytes, 3*slab)
			}
		}
		for range 2 {
			_, err = l.Next(t.Context())
			wantError(t, err, status.ResourceExhausted, "loader: step 3 of epoch 0: 3 batches of 576 bytes in all are not released, "+
				"and one more of 192 would exceed Options.MaxHostBytes = 576; release batches, or drop references to their arrays; then ask again")
		}
		kept[0].Release() // now the next batch has room, and no old error is delivered
		if p := next(t, l); p.Index != 3 {
			t.Errorf("got step %d, want 3", p.Index)
		}
		for _, b := range kept {
			b.Release()
		}
		for step := int64(4); step < 10; step++ {
			if p := next(t, l); p.Index != step {
				t.Errorf("got step %d, want %d", p.Index, step)
			}
		}
	})
}
