// Package metamorphic plays whole runs on random meshes and checks properties
// that must not depend on the mesh.
//
// A test draws a dataset and topologies for it: meshes with permuted devices
// and any ownership, specs that also split trailing dimensions, columns, batch
// sizes with several dimensions, remainders, prefetch depths, workers. It plays
// every process of every topology and restarts some of them on another
// topology. It checks the promises of the design: rows, shards, sequence,
// restarts, memory, ends. A formula yields the expected bytes, element by
// element.
//
// Every failure prints its seed. The flag -seed repeats it.
package metamorphic

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestWorkloads checks 150 random workloads, or 2,000 with MESHFEED_DEEP=1.
func TestWorkloads(t *testing.T) {
	before := runtime.NumGoroutine()
	random.Rounds(t, 150, 2000, testWorkload)
	noMoreGoroutines(t, before)
}

// noMoreGoroutines waits for goroutines that are about to end.
func noMoreGoroutines(t *testing.T, before int) {
	for late := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(late) {
			t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			return
		}
	}
}

func testWorkload(t *testing.T, r *rand.Rand) {
	w := newWorkload(r)
	remainder := random.One(r, layout.Drop, layout.Pad, layout.Pad)
	a := w.topology(t, 0, remainder)
	if size := a.lay.BatchSize(); remainder == layout.Drop && size > w.records {
		w.records += size
	}
	if r.IntN(4) == 0 { // a dataset that divides, and must
		w.records += a.lay.BatchSize() - w.records%a.lay.BatchSize()
		remainder = layout.Refuse
		a = w.topology(t, int(a.lay.BatchSize()), remainder)
	}
	t.Logf("%v\n%v", w, a)
	p := &player{t: t, w: w}
	const epochs = 2
	p.play(a, batch.Cursor{}, epochs)

	// The same batch size on another topology yields the same global batches.
	b := w.topology(t, int(a.lay.BatchSize()), remainder)
	t.Logf("then %v", b)
	p.play(b, batch.Cursor{}, epochs)

	// Stop a at some step, continue with b, then with any batch size.
	stop := r.IntN(int(a.steps(w.records))*epochs + 1)
	state := p.stop(a, stop)
	p.resume(b, state, epochs)
	c := w.topology(t, 0, layout.Pad)
	t.Logf("then %v", c)
	p.resume(c, state, epochs)
}

func (u run) steps(records int64) int64 {
	n := records / u.lay.BatchSize()
	if u.lay.Remainder() == layout.Pad && records%u.lay.BatchSize() > 0 {
		n++
	}
	return n
}

// player plays runs of one workload.
type player struct {
	t *testing.T
	w *workload
}

func (p *player) open(u run, process int, src *synthetic.Source, o loader.Options) *loader.Loader {
	o.Layout, o.Process, o.Processes = u.lay, process, runProcesses
	o.Order, o.Seed, o.Prefetch, o.Workers = p.w.order, p.w.seed, u.prefetch, u.workers
	l, err := loader.New(src, o)
	if err != nil {
		p.t.Fatalf("%v: %v", u, err)
	}
	return l
}

// runProcesses is the number of processes of every run, larger than any mesh.
const runProcesses = 1 << 12

// processes lists the processes of the mesh, and the first number without
// devices.
func processes(u run) []int {
	list := u.lay.Mesh().Processes()
	for n := 0; ; n++ {
		if !slices.Contains(list, n) {
			return append(list, n)
		}
	}
}

// want computes the batches that follow a cursor, directly from the order.
func (p *player) want(u run, c batch.Cursor, epochs int64) (list []step) {
	order, err := sampler.New(p.w.order, p.w.seed, p.w.records)
	if err != nil {
		p.t.Fatal(err)
	}
	size := u.lay.BatchSize()
	for ; c.Epoch < epochs; c = (batch.Cursor{Epoch: c.Epoch + 1}) {
		e := order.Epoch(c.Epoch)
		for ; c.Position < p.w.records; c.Position += size {
			s := step{cursor: c}
			for i := c.Position; i < c.Position+size; i++ {
				if i < p.w.records {
					s.records = append(s.records, e.At(i))
				} else {
					s.records = append(s.records, -1)
				}
			}
			if s.records[size-1] >= 0 || u.lay.Remainder() == layout.Pad {
				list = append(list, s)
			}
		}
	}
	return list
}

type step struct {
	cursor  batch.Cursor
	records []int64
}

// play runs every process from a cursor to the end and checks all properties.
func (p *player) play(u run, c batch.Cursor, epochs int64) {
	p.check(u, loader.Options{Epochs: int(epochs)}, p.want(u, c, epochs))
}

func (p *player) check(u run, o loader.Options, want []step) {
	p.once(u, want)
	p.reported(u)
	for _, process := range processes(u) {
		src := p.w.source()
		l := p.open(u, process, src, o)
		if n := l.Len(); n != int64(len(want)) {
			p.t.Fatalf("process %d: len is %d, want %d", process, n, len(want))
		}
		p.all(u, l, want)
		p.asked(u, process, src, want)
		if err := l.Close(); err != nil {
			p.t.Fatal(err)
		}
		if s := l.Stats(); s.LiveBatches != 0 || s.LiveBytes != 0 {
			p.t.Fatalf("process %d: %+v is live", process, s)
		}
		if n := src.Counts().Gatherers; n != 0 {
			p.t.Fatalf("process %d: %d gatherers are open", process, n)
		}
	}
}

// all takes every batch and keeps some of them until the end.
func (p *player) all(u run, l *loader.Loader, want []step) {
	type kept struct {
		b *batch.Batch
		s step
	}
	var keep []kept
	i := 0
	for b, err := range l.All(context.Background()) {
		if err != nil {
			p.t.Fatalf("process %d: %v", l.Process(), err)
		}
		if i == len(want) || b.Step().Cursor != want[i].cursor {
			p.t.Fatalf("process %d: batch %d is %+v", l.Process(), i, b.Step())
		}
		p.bytes(u, l.Process(), b, want[i])
		keep = append(keep, kept{b, want[i]})
		if len(keep) > 3 || p.w.r.IntN(3) > 0 {
			n := p.w.r.IntN(len(keep))
			keep[n].b.Release()
			keep = slices.Delete(keep, n, n+1)
		}
		i++
	}
	if i != len(want) {
		p.t.Fatalf("process %d: %d batches, want %d", l.Process(), i, len(want))
	}
	for _, k := range keep {
		p.bytes(u, l.Process(), k.b, k.s) // unchanged
		k.b.Release()
	}
}

// stop runs one process for some steps and returns its state. The state equals the state of
// the last batch and is the same on every process.
func (p *player) stop(u run, steps int) []byte {
	var states []loader.State
	for _, process := range processes(u) {
		l := p.open(u, process, p.w.source(), loader.Options{Epochs: -1})
		after := l.State()
		for range steps {
			b, err := l.Next(context.Background())
			if err != nil {
				p.t.Fatal(err)
			}
			after = l.StateAfter(b)
			b.Release()
		}
		if after != l.State() {
			p.t.Fatalf("the state is %v, but %v after the last batch", l.State(), after)
		}
		states = append(states, after)
		if err := l.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	if len(slices.Compact(states)) != 1 {
		p.t.Fatalf("processes differ: %v", states)
	}
	return states[0].JSON()
}

// resume continues from a state: no record is repeated and none is missing.
func (p *player) resume(u run, state []byte, epochs int64) {
	s, err := loader.ParseState(state)
	if err != nil {
		p.t.Fatal(err)
	}
	c := s.Cursor()
	if left := p.w.records - c.Position; u.lay.Remainder() == layout.Refuse && left%u.lay.BatchSize() != 0 {
		o := loader.Options{Layout: u.lay, Order: p.w.order, Seed: p.w.seed, State: state}
		if _, err := loader.New(p.w.source(), o); status.CodeOf(err) != status.InvalidArgument {
			p.t.Fatalf("position %d was accepted: %v", c.Position, err)
		}
		return
	}
	p.check(u, loader.Options{State: state, Epochs: int(epochs)}, p.want(u, c, epochs))
}
