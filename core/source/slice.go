package source

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/meshfeed/meshfeed/core/status"
)

// Slice gives a view of the records [start, stop) of src, numbered from 0: a
// training part and a validation part of one dataset. The range is part of the
// fingerprint, so a state saved over one part is refused by another. A slice
// of a slice is the slice of what lies beneath, and has its fingerprint.
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
		if err := outer.gate.Enter(); err != nil {
			return nil, err
		}
		defer outer.gate.Leave()
		src, start, stop = outer.src, outer.start+start, outer.start+stop
	}
	return &view{src: src, start: start, stop: stop, gate: NewGate("source", "slice", nil)}, nil
}

// view is a range of another source's records.
type view struct {
	src         Source
	start, stop int64
	gate        *Gate
}

func (v *view) Schema() Schema { return v.src.Schema() }

func (v *view) Len() int64 { return v.stop - v.start }

// Fingerprint hashes the fingerprint of the source and the range.
func (v *view) Fingerprint(ctx context.Context) (Fingerprint, error) {
	if err := v.gate.Enter(); err != nil {
		return Fingerprint{}, err
	}
	defer v.gate.Leave()
	ctx, cancel := v.gate.Join(ctx)
	defer cancel()
	whole, err := v.src.Fingerprint(ctx)
	if err != nil {
		return Fingerprint{}, err
	}
	text := append([]byte("meshfeed slice\n"), whole[:]...)
	text = binary.LittleEndian.AppendUint64(text, uint64(v.start))
	text = binary.LittleEndian.AppendUint64(text, uint64(v.stop))
	sum := sha256.Sum256(text)
	return Fingerprint(sum[:len(Fingerprint{})]), nil
}

// Coverage says what the source says.
func (v *view) Coverage() (hashed, of int64) {
	if c, ok := v.src.(Covered); ok {
		return c.Coverage()
	}
	return 0, 0
}

func (v *view) Gatherer(parts []Part) (Gatherer, error) {
	if err := v.gate.Enter(); err != nil {
		return nil, err
	}
	defer v.gate.Leave()
	g, err := v.src.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return &viewGatherer{view: v, g: g}, nil
}

// Check implements Checker for the records of the view.
func (v *view) Check(ctx context.Context, fields []int, start, stop int64) error {
	c, ok := v.src.(Checker)
	if !ok {
		return nil
	}
	if err := v.gate.Enter(); err != nil {
		return err
	}
	defer v.gate.Leave()
	ctx, cancel := v.gate.Join(ctx)
	defer cancel()
	return c.Check(ctx, fields, v.start+start, v.start+stop)
}

// Close ends the gathers of this view, and waits for them.
func (v *view) Close() error { return v.gate.Close(Patience) }

// viewGatherer renumbers records.
type viewGatherer struct {
	view *view
	g    Gatherer
	mu   sync.Mutex
	free [][]int64 // record lists for reuse, one per concurrent call
}

func (g *viewGatherer) Gather(ctx context.Context, records []int64, jobs []Job) error {
	if err := g.view.gate.Enter(); err != nil {
		return err
	}
	defer g.view.gate.Leave()
	ctx, cancel := g.view.gate.Join(ctx)
	defer cancel()
	list := g.list(len(records))
	defer g.recycle(list)
	for i, r := range records {
		if r < -1 || r >= g.view.Len() {
			return status.Errorf(status.OutOfRange, "source", "record %d is outside the %d records of the slice", r, g.view.Len()).With("record", r)
		}
		list[i] = g.view.renumber(r)
	}
	return g.g.Gather(ctx, list, jobs)
}

func (v *view) renumber(record int64) int64 {
	if record < 0 {
		return record // padding
	}
	return v.start + record
}

// Ahead passes the hint on; what is out of range is left to Gather to refuse.
func (g *viewGatherer) Ahead(records []int64) {
	if g.view.gate.Enter() != nil {
		return
	}
	defer g.view.gate.Leave()
	list := g.list(len(records))
	defer g.recycle(list)
	n := 0
	for _, r := range records {
		if r >= 0 && r < g.view.Len() {
			list[n] = g.view.renumber(r)
			n++
		}
	}
	g.g.Ahead(list[:n])
}

func (g *viewGatherer) Close() error { return g.g.Close() }

// list gives a list of n numbers.
func (g *viewGatherer) list(n int) []int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []int64
	if last := len(g.free) - 1; last >= 0 {
		list, g.free = g.free[last], g.free[:last]
	}
	if cap(list) < n {
		list = make([]int64, n)
	}
	return list[:n]
}

func (g *viewGatherer) recycle(list []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, list)
}
