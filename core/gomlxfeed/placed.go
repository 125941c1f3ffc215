package gomlxfeed

import (
	"context"
	"iter"
	"reflect"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
)

// Batches are what Placed places: a loader.Loader, or a stream.Stream of records that
// arrive once.
type Batches interface {
	Layout() *layout.Layout
	Process() int

	// All yields the batches. After a break the next loop continues with the next batch.
	All(ctx context.Context) iter.Seq2[*batch.Batch, error]
}

// Placed yields the batches of a loader or of a stream on devices, as its method All
// yields them on the host. The loop body releases each batch. An error is yielded and
// ends the loop. After a break or an error the next loop continues with the next batch.
// No batch of a loader is lost. A stream cannot go back to a batch that could not be placed.
//
// If the Allocator is a Ring of these devices, batches are placed while they are
// prefetched, before the program asks for them. Others are copied to the devices when
// the program asks for them.
func Placed(ctx context.Context, l Batches, d *Devices) iter.Seq2[*Batch, error] {
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

// placer places batches on devices.
type placer struct {
	l    Batches
	ring *Ring // for batches in other memory
}

func newPlacer(l Batches, d *Devices) (*placer, error) {
	if v := reflect.ValueOf(l); l == nil || v.Kind() == reflect.Pointer && v.IsNil() || d == nil {
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

// place moves a batch to the devices. If that fails, the cursor of a loader goes back, so
// that the batch is delivered again.
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
		if l, ok := p.l.(interface{ Rewind(batch.Cursor) error }); ok {
			_ = l.Rewind(b.Step().Cursor) // fails only if the loader is closed
		}
		return nil, err
	}
	return placed, nil
}
