package loader_test

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// Skip moves to the cursor after the given number of steps, from any position. The
// certificate lists what these steps would have delivered and dropped.
func TestSkipEqualsSteps(t *testing.T) {
	r := random.New(t)
	for range 60 {
		d := document(4 * (1 + r.IntN(6)))
		d.Batch.Remainder = []string{layout.Drop, layout.Pad}[r.IntN(2)]
		for i := range d.Arrays {
			d.Arrays[i].Spec = nil
		}
		d.Mesh.Processes = 1
		src, o := digits(30+r.Int64N(60)), loader.Options{Layout: newLayout(t, d), Shuffle: true, Epochs: -1, Prefetch: -1}
		taken, skips := newLoader(t, src, o), newLoader(t, src, o)
		from := batch.Cursor{Epoch: r.Int64N(3), Position: r.Int64N(src.Len())}
		steps := r.IntN(40)
		for _, l := range []*loader.Loader{taken, skips} {
			if err := l.Seek(from); err != nil {
				t.Fatal(err)
			}
		}
		forward(t, taken, steps)
		if err := skips.Skip(int64(steps)); err != nil {
			t.Fatal(err)
		}
		if got, want := skips.State(), taken.State(); got != want {
			t.Fatalf("%d steps from %v lead to %v, and skipped to %v", steps, from, want, got)
		}
		next(t, skips)
		next(t, taken)
		if steps == 0 {
			continue
		}
		all, some := certificateOf(t, taken).Runs()[0], certificateOf(t, skips).Runs()[0]
		last := at(some.Delivered[0].Epoch, 1, some.Delivered[0].First, some.Delivered[0].Last)
		for what, got := range map[string][2]spans{
			"skipped and delivered": {union(t, slices.Concat(some.Skipped, spans{last})), all.Delivered}, "dropped": {some.Dropped, all.Dropped},
		} {
			if !slices.Equal(got[0], got[1]) {
				t.Fatalf("%d steps from %v, %s: %v, want %v", steps, from, what, got[0], got[1])
			}
		}
	}
}

func TestSkipRefused(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Epochs: 2})
	forward(t, l, 3)
	wantError(t, l.Skip(18), status.OutOfRange, "loader: 18 steps cannot be skipped: 17 are left of 2 epochs")
	wantError(t, l.Skip(-1), status.OutOfRange, "loader: -1 steps cannot be skipped; give a number from 0; seek goes back")
	if at := l.State().Cursor(); at != (batch.Cursor{Position: 24}) {
		t.Errorf("the loader is at %v", at)
	}
	if err := l.Skip(17); err != nil {
		t.Error(err)
	}
	if n := len(loopSteps(t, l)); n != 0 {
		t.Errorf("%d batches after all epochs", n)
	}
	long := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Epochs: -1})
	wantError(t, long.Skip(1<<62), status.OutOfRange, "loader: 4611686018427387904 steps lead beyond epoch 9007199254740992")
	closeLoader(t, l)
	wantError(t, l.Skip(1), status.InvalidState, "loader: the loader is closed")
}

// If steps are skipped into the next epoch, a loop over one epoch ends. The next loop
// continues there.
func TestSkipEndsTheLoop(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8))})
	n := 0
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if n++; n == 2 {
			if err := l.Skip(10); err != nil {
				t.Fatal(err)
			}
		}
	}
	if at := l.State().Cursor(); n != 2 || at != (batch.Cursor{Epoch: 1, Position: 16}) {
		t.Errorf("%d batches, and the loader is at %v", n, at)
	}
	if n := len(loopSteps(t, l)); n != 8 {
		t.Errorf("%d batches are in the next loop, want 8", n)
	}
}

// Rewind to a cursor before skipped steps is Seek.
func TestRewindAfterSkip(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, replicated(8)), Epochs: -1})
	forward(t, l, 2)
	if err := l.Skip(1); err != nil {
		t.Fatal(err)
	}
	forward(t, l, 2)
	if err := l.Rewind(batch.Cursor{Position: 24}); err != nil { // after the skipped step
		t.Fatal(err)
	}
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 16)})
	forward(t, l, 1)
	if err := l.Rewind(batch.Cursor{Position: 8}); err != nil {
		t.Fatal(err)
	}
	forward(t, l, 1)
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 16), at(0, 1, 24, 32)}, spans{at(0, 1, 8, 16)})
	if skipped := certificateOf(t, l).Runs()[0].Skipped; !slices.Equal(skipped, spans{at(0, 1, 16, 24)}) {
		t.Errorf("skipped %v", skipped)
	}
}

// The number of skips is bounded. Beyond it, a certificate is an error.
func TestTooManySkips(t *testing.T) {
	d := document(8)
	d.Arrays[0].Spec, d.Arrays[1].Spec = sharding.P(), sharding.P()
	l := newLoader(t, digits(1<<16), loader.Options{Layout: newLayout(t, d), Prefetch: -1, Epochs: -1})
	for range 4097 {
		forward(t, l, 1)
		if err := l.Skip(1); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Certificate()
	wantError(t, err, status.ResourceExhausted, "loader: the loader was moved, or skipped steps, more than 4096 times, which is more than a certificate can hold; make a new loader from the state, and take a certificate of each")
}

// union returns the canonical form of some spans, as a certificate has them.
func union(t testing.TB, list spans) spans {
	t.Helper()
	c, err := certificate.New(certificate.Sequence{}, []certificate.Run{{Delivered: list}})
	if err != nil {
		t.Fatal(err)
	}
	return c.Runs()[0].Delivered
}
