package loader_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// Eight goroutines call all methods of one loader at once, and some keep their
// batches. No batch is lost or wrong, nothing is left open, and no call fails with
// an unexpected code. Half the loaders have a ready queue.
func TestHammer(t *testing.T) {
	before := runtime.NumGoroutine()
	r := random.New(t)
	lay := newLayout(t, document(8))
	for round := range 30 {
		src := digits(100)
		l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Epochs: round%3 - 1, Workers: 1 + round%2})
		if err != nil {
			t.Fatal(err)
		}
		var q *readyQueue
		if round%4 > 1 {
			q = newReadyQueue(8)
			l.SetReadyQueue(q)
		}
		start := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			mine := random.From(r.Uint64())
			all.Go(func() {
				<-start
				hammer(t, l, q, mine)
			})
		}
		close(start)
		all.Wait()
		closeLoader(t, l)
		if n := src.Counts().Gatherers; n != 0 {
			t.Fatalf("round %d: %d gatherers are open", round, n)
		}
	}
	waitForGoroutines(t, before, "after all")
}

// waitForGoroutines waits until at most as many goroutines as before are running.
func waitForGoroutines(t *testing.T, before int, when string) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(late) {
			t.Errorf("%s: %d goroutines, %d before", when, runtime.NumGoroutine(), before)
			return
		}
	}
}

func hammer(t *testing.T, l *loader.Loader, q *readyQueue, r *rand.Rand) {
	var kept []*batch.Batch
	allow := func(err error, codes ...status.Code) bool {
		for _, c := range append(codes, status.OK, status.InvalidState, status.Cancelled) {
			if status.CodeOf(err) == c {
				return err == nil
			}
		}
		t.Errorf("unexpected %v: %v", status.CodeOf(err), err)
		return false
	}
	for range 40 {
		switch n := r.IntN(100); {
		case n < 20 && q != nil:
			if b, _ := q.take(); b != nil {
				checkMemory(t, l, b.Step(), b.Memory())
				b.Memory().Free()
			}
		case n < 60:
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(300))*time.Microsecond)
			b, err := l.Next(ctx)
			cancel()
			if allow(err, status.End, status.Timeout) {
				checkBytes(t, l, b)
				kept = append(kept, b)
			}
		case n < 75:
			if s := l.Stats(); s.LiveBatches < 0 || s.LiveBytes < 0 || s.Queued > 2 {
				t.Errorf("stats %+v", s)
			}
			_ = l.Len()
		case n < 85:
			allow(l.Restore(l.State().JSON(), false))
		case n < 95:
			allow(l.Seek(batch.Cursor{Epoch: r.Int64N(3), Position: r.Int64N(101)}))
		case n < 97:
			allow(l.Close())
		default:
			if pass, err := l.OneEpoch(r.Int64N(3)); allow(err, status.OutOfRange) {
				b, err := pass.Next(t.Context())
				if allow(err) {
					kept = append(kept, b)
				}
				allow(pass.Close())
			}
		}
		if len(kept) > 4 {
			kept[0].Release()
			kept = kept[1:]
		}
	}
	for _, b := range kept {
		b.Release()
	}
}

func TestOneEpoch(t *testing.T) {
	l := newLoader(t, digits(30), loader.Options{Layout: newLayout(t, document(8)), Shuffle: true})
	next(t, l)
	before := l.State()
	for _, epoch := range []int64{0, 7} {
		pass, err := l.OneEpoch(epoch)
		if err != nil {
			t.Fatal(err)
		}
		if n := pass.Len(); n != 3 {
			t.Errorf("len %d, want 3", n)
		}
		for range 2 {
			b, err := pass.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if b.Step().Epoch != epoch {
				t.Errorf("%+v is of another epoch", b.Step())
			}
			checkBytes(t, pass, b)
			b.Release()
		}
		if list := loopSteps(t, pass); len(list) != 1 {
			t.Errorf("%d batches after the second, want 1", len(list))
		}
		if list := loopSteps(t, pass); len(list) != 0 {
			t.Errorf("a pass that is over yields %d batches", len(list))
		}
		if err := pass.Close(); err != nil {
			t.Error(err)
		}
	}
	if l.State() != before {
		t.Errorf("the cursor moved from %v to %v", before, l.State())
	}
	_, err := l.OneEpoch(-1)
	wantError(t, err, status.OutOfRange, "loader: epoch -1 is outside 0…2^53")
	if p := next(t, l); p.Index != 1 {
		t.Errorf("got step %d, want 1", p.Index)
	}
}

// A loader with a number of epochs has no pass over a later one.
func TestOneEpochOfSome(t *testing.T) {
	l := newLoader(t, digits(30), loader.Options{Layout: newLayout(t, document(8)), Epochs: 3})
	pass, err := l.OneEpoch(2)
	if err != nil {
		t.Fatal(err)
	}
	closeLoader(t, pass)
	_, err = l.OneEpoch(3)
	wantError(t, err, status.OutOfRange, "loader: there is no epoch 3: the loader has 3; epochs count from 0")
}

// A pass outlives its loader.
func TestOneEpochOutlivesLoader(t *testing.T) {
	l, err := loader.New(digits(30), loader.Options{Layout: newLayout(t, document(8))})
	if err != nil {
		t.Fatal(err)
	}
	pass, err := l.OneEpoch(0)
	if err != nil {
		t.Fatal(err)
	}
	closeLoader(t, l)
	if n := len(loopSteps(t, pass)); n != 3 {
		t.Errorf("%d batches, want 3", n)
	}
	closeLoader(t, pass)
}
