package resident

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// held is a range of a file that is read once and serves several later reads.
type held struct {
	Extent
	data []byte
	wait func(ctx context.Context) error // for data; nil if they are there
}

// Hold reads headers of the file, several at a time. Later reads within them take the bytes from
// memory, until the caller releases the pieces.
func (f *File) Hold(ctx context.Context, pieces ...Extent) (release func(), err error) {
	list := make([]Piece, len(pieces))
	for i, e := range pieces {
		list[i] = Piece{f, e}
	}
	plan := f.reads.plan(list, min(f.reads.Gap, sparseGap))
	all := make([]*held, len(plan))
	err = f.reads.Each(len(plan), func(k int) (err error) {
		all[k] = &held{Extent: plan[k].Extent}
		all[k].data, err = f.reads.read(ctx, f, plan[k].Extent)
		return err
	})
	if err != nil {
		return nil, err
	}
	f.held.add(all...)
	return func() { f.held.remove(all...) }, nil
}

// endBytes is how much of the end of a file is read before its format is known. Most footers are
// smaller.
const endBytes = 64 << 10

// HoldEnd holds the end of the file, which has the footer of most formats.
func (f *File) HoldEnd(ctx context.Context) (release func(), err error) {
	n := min(f.Size(), endBytes)
	return f.Hold(ctx, Extent{f.Size() - n, n})
}

// ReadAt implements blob.Blob. It takes bytes from what is held, and reads the others.
func (f *File) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	h := f.held.find(offset, offset+int64(len(p)))
	if h == nil || len(p) == 0 {
		return f.Blob.ReadAt(ctx, p, offset)
	}
	if h.wait != nil {
		if err := h.wait(ctx); err != nil {
			return 0, err
		}
	}
	if h.data == nil { // the read failed, and this one finds out why
		return f.Blob.ReadAt(ctx, p, offset)
	}
	front := max(h.Offset-offset, 0)
	if front > 0 {
		if n, err := f.Blob.ReadAt(ctx, p[:front], offset); n < int(front) {
			return n, err
		}
	}
	copy(p[front:], h.data[offset+front-h.Offset:])
	return len(p), nil
}

// heldSet is what is held of a file. A reader loads the list, and changes replace it.
type heldSet struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*held] // in the order of their offsets; nil if nothing is held
}

// find returns what holds a range, or else what holds its last byte.
func (s *heldSet) find(offset, end int64) (found *held) {
	list := s.list.Load()
	if list == nil {
		return nil
	}
	i, _ := slices.BinarySearchFunc(*list, end, func(h *held, end int64) int { return cmp.Compare(h.Offset, end) })
	for k := i - 1; k >= max(i-maxOverlaps, 0); k-- {
		h := (*list)[k]
		switch {
		case end > h.end():
		case h.Offset <= offset:
			return h
		case found == nil:
			found = h
		}
	}
	return found
}

// maxOverlaps bounds the search of find. Few ranges overlap: pages with rows of two units,
// and ranges that are held for different reasons.
const maxOverlaps = 4

func (s *heldSet) add(more ...*held) {
	s.change(func(list []*held) []*held {
		list = append(list, more...)
		slices.SortFunc(list, func(a, b *held) int { return cmp.Compare(a.Offset, b.Offset) })
		return list
	})
}

func (s *heldSet) remove(some ...*held) {
	gone := make(map[*held]bool, len(some))
	for _, h := range some {
		gone[h] = true
	}
	s.change(func(list []*held) []*held {
		return slices.DeleteFunc(list, func(h *held) bool { return gone[h] })
	})
}

// change replaces the list by what edit makes of a copy.
func (s *heldSet) change(edit func(list []*held) []*held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*held
	if old := s.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	if list = edit(list); len(list) == 0 {
		s.list.Store(nil)
		return
	}
	s.list.Store(&list)
}
