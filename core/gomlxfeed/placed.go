package gomlxfeed

import (
	"context"
	"iter"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

// Placed yields the batches of a loader on devices, as Loader.All yields them on
// the host. The loop body releases each batch. An error is yielded and ends the
// loop. After a break or an error the next loop continues with the next batch,
// and no batch is lost.
//
// If the loader's Allocator is a Ring of these devices, its batches are placed
// while they are prefetched, before the program asks for them. The batches of any
// other loader are copied to the devices when the program asks for them.
func Placed(ctx context.Context, l *loader.Loader, d *Devices) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		p, err := newPlacer(l, d)
		if err != nil {
			yield(nil, err)
			return
		}
		defer p.close()
		p.all(ctx)(yield)
	}
}

// placer places the batches of a loader on devices.
type placer struct {
	l    *loader.Loader
	ring *Ring // for batches in other memory
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

// all yields one loop of the loader.
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

// place moves a batch of the loader to the devices. If that fails, the loader's
// cursor goes back, so that the batch is delivered again.
func (p *placer) place(ctx context.Context, b *batch.Batch) (*Batch, error) {
	taken, err := b.Take()
	if err != nil {
		return nil, err
	}
	if m, ok := taken.(*memory); ok && m.ring.d == p.ring.d && m.ring.plan.same(p.ring.plan) {
		return newBatch(m, b.Step()), nil // the loader's ring has placed it
	}
	defer taken.Free()
	placed, err := p.ring.Place(ctx, b.Step(), taken.Dst)
	if err != nil {
		_ = p.l.Rewind(b.Step().Cursor) // fails only if the loader is closed
		return nil, err
	}
	return placed, nil
}
