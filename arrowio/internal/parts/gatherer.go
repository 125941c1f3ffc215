package parts

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/source"
)

// gatherer gathers from the parts of a set, or from record batches that are decoded in memory.
type gatherer struct {
	set              *set
	onDisk, inMemory source.Gatherer
}

// Gather implements source.Gatherer.
func (g *gatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	if err := g.set.onDisk.Calls.Enter(); err != nil {
		return err
	}
	defer g.set.onDisk.Calls.Leave()
	ready, err := g.set.ready(ctx, len(records), func(i int) int64 { return records[i] })
	switch {
	case err != nil:
		return err
	case ready:
		return g.onDisk.Gather(ctx, draw, records, jobs)
	}
	return g.inMemory.Gather(ctx, draw, records, jobs)
}

// Ahead implements source.Gatherer.
func (g *gatherer) Ahead(draw source.Draw, records []int64) {
	g.set.ahead(draw, records, g.onDisk, g.inMemory)
}

// Close implements source.Gatherer.
func (g *gatherer) Close() error { return errors.Join(g.onDisk.Close(), g.inMemory.Close()) }

// reader reads from the parts of a set, or from record batches that are decoded in memory. It
// writes parts only after records were announced, as a loader does: a program that looks at a few
// rows writes none.
type reader struct {
	set              *set
	onDisk, inMemory source.Reader
	announced        atomic.Bool
}

// Read implements source.Reader.
func (r *reader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	if err := r.set.onDisk.Calls.Enter(); err != nil {
		return err
	}
	defer r.set.onDisk.Calls.Leave()
	record := func(i int) int64 { return spans[i].Record }
	ready := r.set.missing.Load() == 0 || len(r.set.needed(len(spans), record)) == 0
	if !ready && r.announced.Load() {
		var err error
		if ready, err = r.set.ready(ctx, len(spans), record); err != nil {
			return err
		}
	}
	if ready {
		return r.onDisk.Read(ctx, draw, spans, use)
	}
	return r.inMemory.Read(ctx, draw, spans, use)
}

// Lengths implements source.Reader. It writes no parts, because it needs no values, except if all
// fields are decoded together.
func (r *reader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	ready := r.set.missing.Load() == 0
	if !ready && r.set.cache.Whole {
		if err := r.set.onDisk.Calls.Enter(); err != nil {
			return err
		}
		defer r.set.onDisk.Calls.Leave()
		var err error
		if ready, err = r.set.ready(ctx, len(records), func(i int) int64 { return records[i] }); err != nil {
			return err
		}
	}
	if ready {
		return r.onDisk.Lengths(ctx, draw, field, records, out)
	}
	return r.inMemory.Lengths(ctx, draw, field, records, out)
}

// Ahead implements source.Reader.
func (r *reader) Ahead(draw source.Draw, records []int64) {
	r.announced.Store(true)
	r.set.ahead(draw, records, r.onDisk, r.inMemory)
}

// Close implements source.Reader.
func (r *reader) Close() error { return errors.Join(r.onDisk.Close(), r.inMemory.Close()) }
