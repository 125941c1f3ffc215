package source

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/meshfeed/meshfeed/core/status"
)

// Slice returns a view of the records [start, stop) of src, numbered from 0, for
// example the validation part of a dataset. A view renumbers records and passes
// everything else through, so that it copies no row. The range is part of the
// fingerprint, so a loader over one slice rejects a state saved over another. A
// slice of a slice is the same as a slice of the original source.
//
// Closing a view ends the gathers of that view alone; src stays open and has
// to be closed by its owner. A closed src ends its views.
func Slice(src Source, start, stop int64) (Source, error) {
	n := src.Len()
	if start < 0 || stop < start || stop > n {
		return nil, status.Errorf(status.OutOfRange, "source", "the slice [%d, %d) does not lie within the %d records of the dataset", start, stop, n).
			WithHint("use 0 <= start <= stop <= %d", n).With("start", start).With("stop", stop).With("records", n)
	}
	if outer, ok := src.(*view); ok {
		if err := outer.calls.Enter(); err != nil {
			return nil, err
		}
		defer outer.calls.Leave()
		src, start, stop = outer.src, outer.start+start, outer.start+stop
	}
	return &view{src: src, start: start, stop: stop, calls: NewCalls("source", "slice", nil)}, nil
}

// view is a range of another source's records.
type view struct {
	src         Source
	start, stop int64
	calls       *Calls
}

// call calls do with a context that ends when the view is closed.
func (v *view) call(ctx context.Context, do func(ctx context.Context) error) error {
	if err := v.calls.Enter(); err != nil {
		return err
	}
	defer v.calls.Leave()
	ctx, stop := v.calls.Join(ctx)
	defer stop()
	return do(ctx)
}

// Schema implements Source.
func (v *view) Schema() Schema { return v.src.Schema() }

// Len implements Source.
func (v *view) Len() int64 { return v.stop - v.start }

// Fingerprint hashes the fingerprint of the source and the range.
func (v *view) Fingerprint(ctx context.Context) (f Fingerprint, err error) {
	err = v.call(ctx, func(ctx context.Context) error {
		whole, err := v.src.Fingerprint(ctx)
		if err != nil {
			return err
		}
		text := append([]byte("meshfeed slice\n"), whole[:]...)
		text = binary.LittleEndian.AppendUint64(text, uint64(v.start))
		text = binary.LittleEndian.AppendUint64(text, uint64(v.stop))
		sum := sha256.Sum256(text)
		copy(f[:], sum[:])
		return nil
	})
	return f, err
}

// Coverage implements Covered.
func (v *view) Coverage() (hashed, of int64) {
	if c, ok := v.src.(Covered); ok {
		return c.Coverage()
	}
	return 0, 0
}

// Check implements Checker.
func (v *view) Check(ctx context.Context, fields []int, start, stop int64) error {
	c, ok := v.src.(Checker)
	if !ok {
		return nil
	}
	return v.call(ctx, func(ctx context.Context) error { return c.Check(ctx, fields, v.start+start, v.start+stop) })
}

// Gatherer implements Source.
func (v *view) Gatherer(parts []Part) (Gatherer, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	g, err := v.src.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return &viewGatherer{Gatherer: g, view: v}, nil
}

// Close implements Source.
func (v *view) Close() error { return v.calls.Close(Patience) }

// viewGatherer adds the start of the view to record numbers.
type viewGatherer struct {
	Gatherer
	view  *view
	lists sync.Pool // of *[]int64, one for each call under way
}

// Gather implements Gatherer.
func (g *viewGatherer) Gather(ctx context.Context, records []int64, jobs []Job) error {
	return g.view.call(ctx, func(ctx context.Context) error {
		list := g.list()
		defer g.lists.Put(list)
		for _, r := range records {
			if r < -1 || r >= g.view.Len() {
				return status.Errorf(status.OutOfRange, "source", "record %d is outside the %d records of the slice", r, g.view.Len()).With("record", r)
			}
			if r >= 0 { // -1 is padding
				r += g.view.start
			}
			*list = append(*list, r)
		}
		return g.Gatherer.Gather(ctx, *list, jobs)
	})
}

// Ahead implements Gatherer. Gather reports the records that are out of range.
func (g *viewGatherer) Ahead(records []int64) {
	if g.view.calls.Enter() != nil {
		return
	}
	defer g.view.calls.Leave()
	list := g.list()
	defer g.lists.Put(list)
	for _, r := range records {
		if r >= 0 && r < g.view.Len() {
			*list = append(*list, g.view.start+r)
		}
	}
	g.Gatherer.Ahead(*list)
}

// list returns an empty list, with the capacity that an earlier call needed.
func (g *viewGatherer) list() *[]int64 {
	list, ok := g.lists.Get().(*[]int64)
	if !ok {
		list = new([]int64)
	}
	*list = (*list)[:0]
	return list
}
