package loader_test

import (
	"bytes"
	"context"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// inMemory is digits whose gathers wait for nothing.
func inMemory(records int64) *synthetic.Source {
	src := digits(records)
	src.InMemory = true
	return src
}

// makers counts who gathers: a caller of Next, or the goroutine.
type makers struct{ callers, goroutine atomic.Int64 }

func (m *makers) hook(context.Context, []int64) error {
	if bytes.Contains(debug.Stack(), []byte(".(*Loader).Next(")) {
		m.callers.Add(1)
	} else {
		m.goroutine.Add(1)
	}
	return nil
}

// want checks who gathered since the last time.
func (m *makers) want(t *testing.T, callers, goroutine int64) {
	t.Helper()
	if c, g := m.callers.Swap(0), m.goroutine.Swap(0); c != callers || g != goroutine {
		t.Errorf("callers made %d batches and the goroutine %d, want %d and %d", c, g, callers, goroutine)
	}
}

// helpful gives a loader over rows in memory, and its shelf, on which callers
// find all batches that are read ahead before the goroutine comes to itself.
func helpful(t *testing.T, src *synthetic.Source, o loader.Options) (*loader.Loader, *shelf) {
	l, s := shelvedOver(t, src, o)
	s.sleepy = true
	return l, s
}

// want gets a batch, of this step.
func want(t *testing.T, l *loader.Loader, s *shelf, step int64) {
	t.Helper()
	if place, err := get(t, l, s); err != nil || place.Step != step {
		t.Fatalf("got %v, want step %d: %v", place, step, err)
	}
}

// A caller who finds nothing makes the batch, and the goroutine what is read
// ahead.
func TestHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m makers
		src := inMemory(96)
		src.Hook = m.hook
		l, s := helpful(t, src, loader.Options{Epochs: 1})
		for step := int64(0); step < 12; step += 3 {
			want(t, l, s, step)
			synctest.Wait()
			m.want(t, 1, 2)
			want(t, l, s, step+1)
			want(t, l, s, step+2)
		}
		_, err := get(t, l, s)
		wantError(t, err, status.End, "loader: there is no further batch in this loop")
		m.want(t, 0, 0)
	})
}

// Where nothing is read ahead, callers make every batch, and none of the next
// loop at the end of one.
func TestHelpWithoutPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m makers
		src := inMemory(16)
		src.Hook = m.hook
		l, s := shelvedOver(t, src, loader.Options{Prefetch: -1})
		for range 2 {
			want(t, l, s, 0)
			want(t, l, s, 1)
			_, err := get(t, l, s)
			wantError(t, err, status.End, "loader: there is no further batch in this loop")
			synctest.Wait()
			m.want(t, 2, 0)
		}
	})
}

// Nobody helps where a gather may wait for a disk, where several goroutines
// share one, where the caller will not wait, and where callers are goroutines.
func TestNoHelp(t *testing.T) {
	for name, o := range map[string]loader.Options{"disk": {}, "shared": {Workers: 2}, "impatient": {}, "no shelf": {}} {
		synctest.Test(t, func(t *testing.T) {
			var m makers
			src := inMemory(96)
			src.InMemory = name != "disk"
			gate := make(chan struct{})
			src.Hook = func(ctx context.Context, records []int64) error { <-gate; return m.hook(ctx, records) }
			o.Layout = newLayout(t, document(8))
			l := newLoader(t, src, o)
			if name != "no shelf" {
				l.Shelve(newShelf(8))
			}
			if name == "impatient" {
				_, err := l.Next(impatient(t))
				wantError(t, err, status.Timeout, "loader: no batch was ready in time: context deadline exceeded; ask again: nothing is lost")
			}
			close(gate)
			next(t, l)
			synctest.Wait()
			if n := m.callers.Load(); n != 0 || m.goroutine.Load() == 0 {
				t.Errorf("%s: callers made %d batches, and the goroutine %d", name, n, m.goroutine.Load())
			}
		})
	}
}

// impatient is a context whose time is over.
func impatient(t *testing.T) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	t.Cleanup(cancel)
	return ctx
}

// timeless fails the test when somebody waits for its end.
type timeless struct {
	context.Context
	t *testing.T
}

func (c timeless) Done() <-chan struct{} {
	c.t.Error("somebody waits for the end of the context")
	return c.Context.Done()
}

// A call that helps, or finds a batch, asks for no timer.
func TestHelpNeedsNoTimer(t *testing.T) {
	l, _ := shelvedOver(t, inMemory(96), loader.Options{Prefetch: -1})
	b, err := l.Next(timeless{t.Context(), t})
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
}

// gated gives a loader with a caller who helps and whose gather does not end
// before the gate is opened, and what became of his call.
func gated(t *testing.T, o loader.Options) (l *loader.Loader, s *shelf, src *synthetic.Source, open func(), got chan error) {
	gate, first := make(chan struct{}), true
	src = inMemory(96)
	src.Hook = func(context.Context, []int64) error {
		if wait := first; wait {
			first = false
			<-gate
		}
		return nil
	}
	l, s = shelvedOver(t, src, o)
	got = make(chan error, 1)
	go func() {
		b, err := l.Next(t.Context())
		if err == nil {
			got <- step(b.Place().Step)
			b.Release()
			return
		}
		got <- err
	}()
	synctest.Wait()
	src.Counts()
	return l, s, src, func() { close(gate); synctest.Wait() }, got
}

// step is the number of a batch, in the place of an error.
type step int64

func (s step) Error() string { return "no error" }

// A batch that is made by a helper is his, and who comes meanwhile waits for
// the next ones: at the shelf, in Go, or not at all. Nobody else gathers.
func TestCallersDuringHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, src, open, got := gated(t, loader.Options{})
		others := make(chan int64, 2)
		if !s.isExpected() {
			t.Error("no batch is expected at the shelf")
		}
		go func() { others <- next(t, l).Step }()
		synctest.Wait()
		go func() {
			place, err := get(t, l, s)
			if err != nil {
				t.Error(err)
			}
			others <- place.Step
		}()
		_, err := l.Next(impatient(t))
		wantError(t, err, status.Timeout, "loader: no batch was ready in time: context deadline exceeded; ask again: nothing is lost")
		synctest.Wait()
		if c := src.Counts(); c.Gathers != 0 {
			t.Errorf("%d gathers beside the helper's", c.Gathers)
		}
		open()
		if err := <-got; err != step(0) {
			t.Errorf("the helper got %v, want his batch", err)
		}
		if a, b := <-others, <-others; min(a, b) != 1 || max(a, b) != 2 {
			t.Errorf("the others got steps %d and %d, want 1 and 2", a, b)
		}
	})
}

// The goroutine that comes from a rest, to rest again or to end, while a caller
// helps, makes nothing before he is done, and what it waits is nobody's idleness.
func TestRestDuringHelp(t *testing.T) {
	for name, c := range map[string]struct {
		pass time.Duration
		left int
	}{"rests": {time.Millisecond, 1}, "ends": {time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			var slow atomic.Bool
			src := inMemory(96)
			src.Hook = func(context.Context, []int64) error {
				if slow.Swap(false) {
					<-gate
				}
				return nil
			}
			l, s := helpful(t, src, loader.Options{})
			for step := range int64(3) {
				want(t, l, s, step)
				synctest.Wait()
			}
			slow.Store(true)
			go func() { want(t, l, s, 3) }()
			synctest.Wait()
			src.Counts()
			s.Wake()
			time.Sleep(c.pass)
			synctest.Wait()
			if n := src.Counts().Gathers; n != 0 || producers() != c.left {
				t.Errorf("%s: %d gathers beside the helper's, and %d goroutines, want 0 and %d", name, n, producers(), c.left)
			}
			close(gate)
			synctest.Wait()
			if n := s.lying(); n != 2 {
				t.Errorf("%s: %d batches lie on the shelf behind the help, want 2", name, n)
			}
			if w := l.Stats(); w.ProducerWait != 0 || w.ConsumerWait != c.pass {
				t.Errorf("%s: the loader waited %v and its caller %v, want 0 and %v", name, w.ProducerWait, w.ConsumerWait, c.pass)
			}
		})
	}
}

// A jump during a help drops its batch, and the helper gets that at the new
// place.
func TestJumpDuringHelp(t *testing.T) {
	jumps := map[string]func(l *loader.Loader) error{
		"seek": func(l *loader.Loader) error { return l.Seek(batch.Cursor{Position: 40}) },
		"restore": func(l *loader.Loader) error {
			s := l.State()
			s.Position = 40
			return l.Restore(s.JSON(), false)
		},
	}
	for name, jump := range jumps {
		synctest.Test(t, func(t *testing.T) {
			l, s, src, open, got := gated(t, loader.Options{})
			if err := jump(l); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if c := src.Counts(); c.Gathers != 0 {
				t.Errorf("%s: %d gathers beside the helper's", name, c.Gathers)
			}
			open()
			if err := <-got; err != step(5) {
				t.Errorf("%s: the helper got %v, want step 5", name, err)
			}
			want(t, l, s, 6)
		})
	}
	synctest.Test(t, func(t *testing.T) { // behind the last epoch nothing is made for him
		l, _, _, open, got := gated(t, loader.Options{Epochs: 1})
		if err := l.Seek(batch.Cursor{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		open()
		if err := <-got; status.CodeOf(err) != status.End {
			t.Errorf("the helper got %v, want the end", err)
		}
	})
}

// Close waits for a helper, whose call is cancelled, and the gatherer is closed
// behind him, by whoever is the last.
func TestCloseDuringHelp(t *testing.T) {
	for name, pass := range map[string]time.Duration{"soon": 0, "late": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			l, s, src, open, got := gated(t, loader.Options{})
			done := make(chan error, 1)
			go func() { done <- l.Close() }()
			time.Sleep(pass)
			synctest.Wait()
			if n := src.Counts().Gatherers; n != 1 || s.closed != 0 {
				t.Errorf("%s: %d gatherers are open during a gather, and the shelf was closed %d times", name, n, s.closed)
			}
			open()
			if n := src.Counts().Gatherers; n != 0 || s.closed != 1 {
				t.Errorf("%s: %d gatherers are open after Close, and the shelf was closed %d times", name, n, s.closed)
			}
			wantError(t, <-got, status.Cancelled, "loader: the loader was closed while this call waited for a batch")
			if err := <-done; err != nil {
				t.Error(err)
			}
			closeLoader(t, l) // and nothing lives
		})
	}
}

// A failure of a help is the helper's, and so is the next try.
func TestHelpFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail func() error
		code status.Code
		text string
	}{
		"error": {func() error { return status.New(status.DataLoss, "disk", "sector 7 is unreadable") },
			status.DataLoss, "loader: step 0 of epoch 0: disk: sector 7 is unreadable"},
		"panic": {func() error { panic("worker fell over") },
			status.Internal, "loader: step 0 of epoch 0: loader: panic: worker fell over; " +
				"this is a bug in meshfeed: please report it with the file and the options that led here"},
	} {
		synctest.Test(t, func(t *testing.T) {
			src := inMemory(96)
			src.Hook = func(context.Context, []int64) error { return c.fail() }
			l, s := shelvedOver(t, src, loader.Options{})
			for range 2 {
				_, err := get(t, l, s)
				wantError(t, err, c.code, c.text)
				if n := producers(); n != 0 {
					t.Errorf("%s: %d goroutines read ahead behind a failure", name, n)
				}
			}
			src.Hook = nil
			want(t, l, s, 0)
			want(t, l, s, 1)
		})
	}
}

// A caller for whom there is no memory learns it where others do.
func TestHelpWithoutMemory(t *testing.T) {
	l, s := shelvedOver(t, inMemory(96), loader.Options{MaxHostBytes: 192, Allocator: batch.NewHeap(0)})
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = get(t, l, s)
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("got %v, want no memory", err)
		}
	}
	b.Release()
	want(t, l, s, 1)
}

// slowly is what a panic says, so late that others go on meanwhile.
type slowly string

func (s slowly) String() string {
	time.Sleep(pause / 2)
	return string(s)
}

// fragile is a shelf that panics once when it is armed, during a help.
type fragile struct {
	*shelf
	armed *atomic.Bool
}

func (f fragile) Expect(soon bool) {
	f.shelf.Expect(soon)
	if f.armed.Swap(false) {
		panic(slowly("the shelf fell down"))
	}
}

// A panic of the loader itself behind a help is told in its place, and neither
// loses a batch nor delivers one twice: not the helper's own, nor those that the
// goroutine makes meanwhile.
func TestHelpBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Bool
		var gathers atomic.Int32
		src := inMemory(96)
		src.Hook = func(_ context.Context, records []int64) error {
			if n := gathers.Add(1); n > 1 {
				t.Errorf("%d gathers at a time", n)
			}
			defer gathers.Add(-1)
			if records[0] == 0 {
				armed.Store(true)
			}
			time.Sleep(pause)
			return nil
		}
		l, s := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Epochs: 1}), newShelf(8)
		l.Shelve(fragile{s, &armed})
		want(t, l, s, 0)
		_, err := get(t, l, s)
		wantError(t, err, status.Internal, "loader: panic: the shelf fell down; "+
			"this is a bug in meshfeed: please report it with the file and the options that led here")
		for step := int64(1); step < 12; step++ {
			if p := next(t, l); p.Step != step {
				t.Errorf("step %d came, want %d", p.Step, step)
			}
		}
	})
}

// The time of a help is one in which its caller waits. It is none in which
// enough stands ready, but that behind it is, though the goroutine may be gone.
func TestWaitsWithHelp(t *testing.T) {
	for _, prefetch := range []int{2, -1} {
		synctest.Test(t, func(t *testing.T) {
			src := inMemory(96)
			src.Hook = aSecond
			l, s := helpful(t, src, loader.Options{Prefetch: prefetch})
			for round := range 3 {
				before := l.Stats()
				want(t, l, s, int64(round*(1+max(prefetch, 0))))
				if w := l.Stats().ConsumerWait - before.ConsumerWait; w != time.Second {
					t.Errorf("prefetch %d: the caller waited %v, want 1s", prefetch, w)
				}
				time.Sleep(time.Minute) // the first seconds of it, for what is read ahead
				for i := range prefetch {
					want(t, l, s, int64(round*(1+prefetch)+1+i))
				}
				idle := time.Minute - time.Duration(max(prefetch, 0))*time.Second
				if w := l.Stats().ProducerWait - before.ProducerWait; w != idle {
					t.Errorf("prefetch %d: the loader waited %v, want %v", prefetch, w, idle)
				}
			}
		})
	}
}
