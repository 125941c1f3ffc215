package gomlxfeed

import (
	"context"
	"iter"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

// Placed is a loop over the batches of a loader, on devices: as Loader.All, but
// each batch is one of dtensors. The loop body releases it. An error ends the
// loop after it was yielded; after a break or an error, the next loop goes on
// with the next batch, and nothing is lost.
//
// A loader that was given a Ring of these devices has placed a batch when it
// stands ready, so that up to its prefetch of them are on the devices while one
// is computed. The batches of any other loader are copied to the devices when
// they are asked for.
func Placed(ctx context.Context, l *loader.Loader, d *Devices) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		p, err := newPlacer(l, d)
		if err != nil {
			yield(nil, err)
			return
		}
		defer p.close()
		for b, err := range p.all(ctx) {
			if !yield(b, err) {
				return
			}
		}
	}
}

// placer makes placed batches of a loader's.
type placer struct {
	l     *loader.Loader
	ring  *Ring // for batches in other memory
	known *Ring // the loader's own, when it was seen to be as good
}

func newPlacer(l *loader.Loader, d *Devices) (*placer, error) {
	if l == nil || d == nil {
		return nil, fail("a loader and devices are needed")
	}
	ring, err := d.Ring(l.Layout())
	if err != nil {
		return nil, err
	}
	if p := ring.plan.process; l.Process() != p {
		return nil, fail("the loader is of process %d, but the devices of the mesh are of process %d", l.Process(), p).
			WithHint("set loader.Options.Process to %d", p)
	}
	return &placer{l: l, ring: ring}, nil
}

func (p *placer) close() { _ = p.ring.Close() } // never an error

// all is one loop of the loader.
func (p *placer) all(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for b, err := range p.l.All(ctx) {
			var placed *Batch
			if err == nil {
				placed, err = p.place(ctx, b)
			}
			if !yield(placed, err) || err != nil {
				return
			}
		}
	}
}

// place makes a batch of the loader a placed one. If that fails, the loader
// stands where it stood before.
func (p *placer) place(ctx context.Context, b *batch.Batch) (*Batch, error) {
	taken, err := b.Take()
	if err != nil {
		return nil, err
	}
	if m, ok := taken.(*memory); ok && p.mine(m.ring) {
		return newBatch(m, b.Place()), nil
	}
	defer taken.Free()
	placed, err := p.ring.Place(ctx, b.Place(), taken.Dst)
	if err != nil {
		_ = p.l.Rewind(b.Place().Cursor) // a closed loader has no place
		return nil, err
	}
	return placed, nil
}

// mine says whether a ring's batches are already where they should be.
func (p *placer) mine(r *Ring) bool {
	if r != p.known && r.d == p.ring.d && r.plan.same(p.ring.plan) {
		p.known = r
	}
	return r == p.known
}
