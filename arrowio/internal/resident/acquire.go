package resident

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Lease keeps the addresses that Acquire gave valid until Release.
type Lease struct {
	set    *Set
	buffer *buffer // what was read
}

// Release ends the lease. It must be called once.
func (l *Lease) Release() {
	buffers.Put(l.buffer)
	l.set.gate.Leave()
}

// buffer is memory to read into, and the lists that it takes to do so. A step
// needs about as much as the step before, so buffers are used again.
type buffer struct {
	bytes   []byte
	missing []int
	list    []region
	first   []int
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// grow makes room for size bytes, and for a step that needs a little more.
func (b *buffer) grow(size int) {
	if cap(b.bytes) < size {
		b.bytes = make([]byte, size+size/8)
	}
	b.bytes = b.bytes[:size]
}

// Acquire makes the spans resident and writes their addresses to the first
// entries of to. It returns when all of them may be read without waiting, with
// Cancelled when ctx ends or the set is closed before that, with DataLoss if a
// file has shrunk.
func (s *Set) Acquire(ctx context.Context, spans []Span, to []uintptr) (*Lease, error) {
	if err := s.gate.Enter(); err != nil {
		return nil, err
	}
	b := buffers.Get().(*buffer)
	err := s.locate(spans, to, b)
	if err == nil && len(b.missing) > 0 {
		err = s.fetch(ctx, spans, to, b)
	}
	if err != nil {
		s.gate.Leave()
		return nil, err // a reader may still be writing to b: it is not used again
	}
	return &Lease{set: s, buffer: b}, nil
}

// locate gives the addresses of mapped spans, and in b.missing the indices of
// the spans that are not known to be resident.
func (s *Set) locate(spans []Span, to []uintptr, b *buffer) error {
	b.missing = b.missing[:0]
	for i, span := range spans {
		f := s.files[span.File]
		if !f.covers(span) {
			return status.Errorf(status.Internal, "arrowio", "%s: bytes %d to %d are asked of a file of %d",
				f.name, span.Offset, span.Offset+int64(span.Length), f.size)
		}
		to[i] = f.base() + uintptr(span.Offset)
		if !f.resident(span) {
			b.missing = append(b.missing, i)
		}
	}
	return nil
}

// region is one piece of a file to be read or populated; it covers spans that
// lie close together.
type region struct {
	file     *File
	from, to int64
	at       int // of its bytes in the buffer, where the file is not mapped
}

// Spans less than gapBytes apart are read at once, up to regionBytes; less than
// wholeGapBytes where the file is read as a whole anyway, which a disk does
// faster than thousands of rows one by one.
const (
	gapBytes      = 4 << 10
	wholeGapBytes = 64 << 10
	regionBytes   = 1 << 20
)

// regions puts the spans with the given indices into file order, and joins
// neighbours. The spans order[first[k]:first[k+1]] lie in region k.
func (s *Set) regions(spans []Span, order []int, list []region, first []int) ([]region, []int) {
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].File, spans[b].File), cmp.Compare(spans[a].Offset, spans[b].Offset))
	})
	for k, i := range order {
		file, from, gap := s.files[spans[i].File], spans[i].Offset, int64(gapBytes)
		if file.whole {
			gap = wholeGapBytes
		}
		to := from + int64(spans[i].Length)
		if n := len(list); n > 0 {
			last := &list[n-1]
			if last.file == file && from <= last.to+gap && to-last.from <= regionBytes {
				last.to = max(last.to, to)
				continue
			}
		}
		list, first = append(list, region{file: file, from: from, to: to}), append(first, k)
	}
	return list, append(first, len(order))
}

// fetch makes the missing spans resident. What has to be read goes to a buffer,
// and the addresses of those spans point there.
func (s *Set) fetch(ctx context.Context, spans []Span, to []uintptr, b *buffer) error {
	b.list, b.first = s.regions(spans, b.missing, b.list[:0], b.first[:0])
	list, first := b.list, b.first
	size := 0
	for k := range list {
		if r := &list[k]; r.file.mapping == nil {
			r.at = size
			size += (int(r.to-r.from) + 63) &^ 63
		}
	}
	b.grow(size)
	if err := s.load(ctx, list, b); err != nil {
		return err
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b.bytes)))
	for k, r := range list {
		for _, i := range b.missing[first[k]:first[k+1]] {
			if r.file.mapping == nil {
				to[i] = base + uintptr(r.at) + uintptr(spans[i].Offset-r.from)
			}
		}
	}
	return nil
}

// readers is how many regions are read at a time: a disk answers many requests
// in the time of one.
const readers = 32

// load does the regions on several goroutines and waits for them, for ctx or
// for the set to be closed. A goroutine that is stuck in a system call goes on
// alone.
func (s *Set) load(ctx context.Context, list []region, b *buffer) error {
	var next, left atomic.Int64
	var stopped atomic.Bool
	done := make(chan error, 1) // the first error, or nil after the last region
	left.Store(int64(len(list)))
	work := func() error {
		defer s.gate.Leave()
		for k := next.Add(1) - 1; k < int64(len(list)) && !stopped.Load(); k = next.Add(1) - 1 {
			if err := list[k].load(b); err != nil {
				return err
			}
			if left.Add(-1) == 0 {
				done <- nil
			}
		}
		return nil
	}
	failed := func(err error) {
		stopped.Store(true)
		select {
		case done <- err:
		default:
		}
	}
	open, detach := s.gate.Join(ctx)
	defer detach()
	for range min(readers, len(list)) {
		if s.gate.Enter() != nil {
			break // closed: the wait below says so
		}
		guard.Go("arrowio", work, failed)
	}
	select {
	case err := <-done:
		return err
	case <-open.Done():
		stopped.Store(true)
		if err := ctx.Err(); err != nil {
			return &status.Error{Code: status.CodeOf(err), Op: "arrowio", Msg: "the read was cancelled", Err: err}
		}
		return status.New(status.Cancelled, "arrowio", "the dataset was closed during the read")
	}
}

// load makes a region resident. That of a mapping is asked for by name first:
// around a page that populate finds missing, the kernel reads as much as is set
// for the disk, which can be 8 MB, and a step has many rows.
func (r *region) load(b *buffer) error {
	if r.file.mapping != nil {
		r.file.willNeed(r.from, r.to)
		return r.file.populate(r.from, r.to)
	}
	return r.file.read(b.bytes[r.at:r.at+int(r.to-r.from)], r.from)
}
