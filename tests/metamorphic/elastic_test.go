package metamorphic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// cluster is a run of w on equal parts of the devices, with the batch over all
// of them.
func (w *workload) cluster(t *testing.T, processes, size int, remainder string) run {
	d := &layout.Document{
		Mesh:  layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 8}}, Processes: processes},
		Batch: &layout.BatchSpec{Size: []int{size}, Remainder: remainder},
	}
	if 8%processes != 0 {
		d.Mesh.Axes[0].Size = processes
	}
	for _, a := range w.arrays {
		a.Spec = sharding.P("data")
		d.Arrays = append(d.Arrays, a)
	}
	lay, err := layout.Draft(d)
	if err != nil {
		t.Fatal(err)
	}
	return run{doc: d, lay: lay, prefetch: w.r.IntN(5) - 1, workers: 1 + w.r.IntN(3)}
}

// TestRestoreOnOtherProcesses stops a run on every number of processes and
// continues on every other number, with other meshes, prefetch depths and batch
// sizes. The run must continue with the next records, whatever the remainder.
func TestRestoreOnOtherProcesses(t *testing.T) {
	counts := []int{1, 2, 3, 4, 8}
	for _, remainder := range []string{layout.Drop, layout.Pad, layout.Refuse} {
		t.Run(remainder, func(t *testing.T) {
			w := newWorkload(random.New(t))
			w.records = 480
			if remainder != layout.Refuse {
				w.records += w.r.Int64N(48)
			}
			p := &player{t: t, w: w}
			for i, from := range counts {
				state := p.stop(w.cluster(t, from, 48, remainder), 1+w.r.IntN(25))
				to := w.cluster(t, counts[(i+1+w.r.IntN(4))%5], 48, remainder)
				t.Logf("%s on %d processes continues with %v", state, from, to)
				p.resume(to, state, 3)
				p.resume(w.topology(t, 48, remainder), state, 3)
				p.resume(w.cluster(t, 4, []int{8, 24, 40}[w.r.IntN(3)], remainder), state, 3)
			}
		})
	}
}

// TestIndivisibleBatch restores on a mesh that does not divide the batch: the
// layout reports it.
func TestIndivisibleBatch(t *testing.T) {
	w := newWorkload(random.From(7))
	w.records = 480
	p := &player{t: t, w: w}
	state := p.stop(w.cluster(t, 4, 48, layout.Drop), 3)
	_, err := loader.New(w.source(), loader.Options{
		Layout: w.cluster(t, 5, 48, layout.Drop).lay, Order: w.order, Seed: w.seed, State: state,
	})
	want := fmt.Sprintf("layout: dimension 0 of array %q of shape ", w.arrays[0].Name)
	rest := ` is split 5 ways by axis "data" (size 5), but 48 % 5 = 3; use a batch of 45 or 50`
	if status.CodeOf(err) != status.InvalidArgument || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), rest) {
		t.Errorf("got  %v\nwant %v…%v", err, want, rest)
	}
}

// TestChains takes runs through random sequences of restarts and new meshes, in
// the middle of epochs and between them. It compares every global batch with
// the order: 60 chains, or 800 with MESHFEED_DEEP=1.
func TestChains(t *testing.T) { random.Rounds(t, 60, 800, testChain) }

// chain is a run on some mesh: one loader per process.
type chain struct {
	*player
	run     run
	loaders []*loader.Loader
	cursor  batch.Cursor // position of the next batch of all of them
	inLoop  bool         // the epoch of the last batch has not ended
}

func testChain(t *testing.T, r *rand.Rand) {
	w := newWorkload(r)
	w.records += 48
	c := &chain{player: &player{t: t, w: w}, run: w.topology(t, 0, layout.Pad)}
	t.Logf("%v", w)
	for _, process := range processes(c.run) {
		c.loaders = append(c.loaders, c.open(c.run, process, w.source(), loader.Options{}))
	}
	for range 6 {
		t.Logf("%v on %v", c.cursor, c.run)
		c.advance(w.r.IntN(2 * int(c.run.steps(w.records))))
		next := w.topology(t, 0, []string{layout.Drop, layout.Pad}[w.r.IntN(2)])
		if c.moveTo(next); w.r.IntN(2) == 0 {
			c.restart(next)
		} else {
			c.remesh(next)
		}
	}
	c.advance(2)
	c.close()
}

// advance takes batches on every process and compares them, including the ends
// of epochs.
func (c *chain) advance(steps int) {
	for range steps {
		want := c.want(c.run, c.cursor, c.cursor.Epoch+1)
		for _, l := range c.loaders {
			c.step(l, want)
		}
		switch {
		case c.inLoop && c.cursor.Position == 0: // the end of a loop was seen
			c.inLoop = false
		case len(want) > 1:
			c.cursor.Position, c.inLoop = want[1].cursor.Position, true
		default:
			c.cursor, c.inLoop = batch.Cursor{Epoch: c.cursor.Epoch + 1}, true
		}
	}
}

func (c *chain) step(l *loader.Loader, want []step) {
	b, err := l.Next(context.Background())
	if c.inLoop && c.cursor.Position == 0 {
		if status.CodeOf(err) != status.End {
			c.t.Fatalf("process %d: the loop continues in epoch %d: %v", l.Process(), c.cursor.Epoch, err)
		}
		return
	}
	if err != nil {
		c.t.Fatalf("process %d: %v", l.Process(), err)
	}
	if b.Step().Cursor != want[0].cursor {
		c.t.Fatalf("process %d: got the batch at %v, want %v", l.Process(), b.Step().Cursor, want[0].cursor)
	}
	c.bytes(c.run, l.Process(), b, want[0])
	b.Release()
}

// moveTo sets the cursor to the start of the next run. If its batch size leaves no step
// in this epoch, the run starts with the next epoch.
func (c *chain) moveTo(next run) {
	if left := c.w.records - c.cursor.Position; c.cursor.Position > 0 && next.steps(left) == 0 {
		c.cursor = batch.Cursor{Epoch: c.cursor.Epoch + 1}
	}
	if c.w.records < next.lay.BatchSize() && next.lay.Remainder() == layout.Drop {
		c.t.Fatal("the dataset is too small")
	}
}

// restart ends all processes and starts the processes of the next run from the state.
func (c *chain) restart(next run) {
	state := c.loaders[0].State().JSON()
	c.close()
	c.run, c.loaders, c.inLoop = next, nil, false
	for _, process := range processes(next) {
		c.loaders = append(c.loaders, c.open(next, process, c.w.source(), loader.Options{State: state}))
	}
}

// remesh turns the loaders into processes of the next run, in random order.
func (c *chain) remesh(next run) {
	var list []*loader.Loader
	for _, process := range processes(next) {
		l, err := c.loaders[c.w.r.IntN(len(c.loaders))].Remesh(next.lay, process, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		list = append(list, l)
	}
	c.close()
	c.run, c.loaders = next, list
}

func (c *chain) close() {
	for _, l := range c.loaders {
		if err := l.Close(); err != nil {
			c.t.Fatal(err)
		}
		if s := l.Stats(); s.LiveBatches != 0 {
			c.t.Fatalf("%d batches are live", s.LiveBatches)
		}
	}
}
