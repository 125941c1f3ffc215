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

// Units implements Units.
func (v *view) Units() []int64 {
	sizes, err := UnitsOf(v.src)
	if err != nil {
		return nil
	}
	return UnitsBetween(sizes, v.start, v.stop)
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
	return &viewGatherer{Gatherer: g, renumbering: renumbering{view: v}}, nil
}

// Reader implements Source.
func (v *view) Reader(fields []int) (Reader, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	r, err := v.src.Reader(fields)
	if err != nil {
		return nil, err
	}
	return &viewReader{Reader: r, renumbering: renumbering{view: v}}, nil
}

// Close implements Source.
func (v *view) Close() error { return v.calls.Close(Patience) }

// renumbering adds the start of a view to record numbers.
type renumbering struct {
	view  *view
	lists sync.Pool // of *[]int64, one for each call under way
}

// all returns the numbers of records in the source below. Padding, which is -1, stays
// as it is if the call permits it.
func (n *renumbering) all(records []int64, padding bool) (*[]int64, error) {
	list := n.list()
	for _, r := range records {
		if r < -1 || r >= n.view.Len() || r < 0 && !padding {
			n.lists.Put(list)
			return nil, n.outOfRange(r)
		}
		if r >= 0 {
			r += n.view.start
		}
		*list = append(*list, r)
	}
	return list, nil
}

func (n *renumbering) outOfRange(record int64) error {
	return status.Errorf(status.OutOfRange, "source", "record %d is outside the %d records of the slice", record, n.view.Len()).With("record", record)
}

// ahead announces the records that exist. Gather and Read report the others.
func (n *renumbering) ahead(records []int64, announce func(records []int64)) {
	if n.view.calls.Enter() != nil {
		return
	}
	defer n.view.calls.Leave()
	list := n.list()
	defer n.lists.Put(list)
	for _, r := range records {
		if r >= 0 && r < n.view.Len() {
			*list = append(*list, n.view.start+r)
		}
	}
	announce(*list)
}

// list returns an empty list, with the capacity that an earlier call needed.
func (n *renumbering) list() *[]int64 {
	list, ok := n.lists.Get().(*[]int64)
	if !ok {
		list = new([]int64)
	}
	*list = (*list)[:0]
	return list
}

// viewGatherer gathers from the source below.
type viewGatherer struct {
	Gatherer
	renumbering
}

// Gather implements Gatherer.
func (g *viewGatherer) Gather(ctx context.Context, records []int64, jobs []Job) error {
	return g.view.call(ctx, func(ctx context.Context) error {
		list, err := g.all(records, true)
		if err != nil {
			return err
		}
		defer g.lists.Put(list)
		return g.Gatherer.Gather(ctx, *list, jobs)
	})
}

// Ahead implements Gatherer.
func (g *viewGatherer) Ahead(records []int64) { g.ahead(records, g.Gatherer.Ahead) }

// viewReader reads from the source below.
type viewReader struct {
	Reader
	renumbering
}

// Read implements Reader. The spans have the record numbers of the source below until
// their rows are found.
func (r *viewReader) Read(ctx context.Context, spans []Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		for i := range spans {
			if record := spans[i].Record; record < 0 || record >= r.view.Len() {
				return r.outOfRange(record)
			}
		}
		shift(spans, r.view.start)
		shifted := true
		restore := func() {
			if shifted {
				shift(spans, -r.view.start)
			}
			shifted = false
		}
		defer restore()
		return r.Reader.Read(ctx, spans, func() error { restore(); return use() })
	})
}

func shift(spans []Span, by int64) {
	for i := range spans {
		spans[i].Record += by
	}
}

// Lengths implements Reader.
func (r *viewReader) Lengths(ctx context.Context, field int, records, out []int64) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		list, err := r.all(records, false)
		if err != nil {
			return err
		}
		defer r.lists.Put(list)
		return r.Reader.Lengths(ctx, field, *list, out)
	})
}

// Ahead implements Reader.
func (r *viewReader) Ahead(records []int64) { r.ahead(records, r.Reader.Ahead) }
