package resident

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Lease keeps the addresses that Acquire returned valid until Release.
type Lease struct{ buffer *buffer }

// Release ends the lease. It must be called once.
func (l *Lease) Release() { buffers.Put(l.buffer) }

// buffer is the memory of one Acquire. A step needs about as much as the step before,
// so buffers are pooled.
type buffer struct {
	bytes   []byte   // bytes of files that are not mapped
	missing []int    // indices of spans to load; the method regions sorts them by position
	list    []region // regions that cover the missing spans
	first   []int    // per region, the position in missing of its first span
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// grow sets the length to size bytes. If it allocates, it adds an eighth, because the
// next step may need a little more.
func (b *buffer) grow(size int) {
	if cap(b.bytes) < size {
		b.bytes = make([]byte, size+size/8)
	}
	b.bytes = b.bytes[:size]
}

// Acquire makes the spans resident and writes their addresses to the first
// entries of to. It returns when all of them can be read without a wait. The error
// is Cancelled if ctx ends or the dataset is closed before that, and DataLoss if a
// file was truncated.
func (s *Set) Acquire(ctx context.Context, spans []Span, to []uintptr) (*Lease, error) {
	b := buffers.Get().(*buffer)
	err := s.locate(spans, to, b)
	if err == nil && len(b.missing) > 0 {
		err = s.fetch(ctx, spans, to, b)
	}
	if err != nil {
		return nil, err // b does not go back to the pool: a read may still write to it
	}
	return &Lease{b}, nil
}

// locate writes the addresses of mapped spans to to. It writes the indices of spans
// that are not known to be resident to b.missing.
func (s *Set) locate(spans []Span, to []uintptr, b *buffer) error {
	b.missing = b.missing[:0]
	for i, span := range spans {
		f := s.files[span.File]
		if !f.covers(span) {
			return status.Errorf(status.Internal, "arrowio", "%s: a gather asks for bytes %d to %d of a file of %d",
				f.Name(), span.Offset, span.Offset+int64(span.Length), f.Size())
		}
		to[i] = f.base() + uintptr(span.Offset)
		if !f.resident(span) {
			b.missing = append(b.missing, i)
		}
	}
	return nil
}

// region is a range of a file to read or populate. It covers spans that lie close
// together.
type region struct {
	file     *File
	from, to int64
	at       int // position of its bytes in the buffer, unless the file is mapped
}

// wholeGapBytes is the gap between joined spans in a mapping that becomes resident as a whole.
const wholeGapBytes = 64 << 10

// regions sorts order, the indices of spans, by position in the files, and joins
// neighbors to regions as the hints of the storage say: one long range is read faster than
// thousands of rows. The spans order[first[k]:first[k+1]] lie in region k.
func (s *Set) regions(spans []Span, order []int, list []region, first []int) ([]region, []int) {
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].File, spans[b].File), cmp.Compare(spans[a].Offset, spans[b].Offset))
	})
	for k, i := range order {
		file, from, gap := s.files[spans[i].File], spans[i].Offset, s.reads.Gap
		if file.whole {
			gap = wholeGapBytes
		}
		to := from + int64(spans[i].Length)
		if n := len(list); n > 0 {
			last := &list[n-1]
			if last.file == file && from <= last.to+gap && to-last.from <= s.reads.Size {
				last.to = max(last.to, to)
				continue
			}
		}
		list, first = append(list, region{file: file, from: from, to: to}), append(first, k)
	}
	return list, append(first, len(order))
}

// fetch makes the missing spans resident. If a file is not mapped, its spans are
// read into the buffer and their addresses point there.
func (s *Set) fetch(ctx context.Context, spans []Span, to []uintptr, b *buffer) error {
	b.list, b.first = s.regions(spans, b.missing, b.list[:0], b.first[:0])
	list, first := b.list, b.first
	size := 0
	for k := range list {
		if r := &list[k]; r.file.mapping == nil {
			r.at = size
			size += (int(r.to-r.from) + 63) &^ 63 // whole cache lines
		}
	}
	b.grow(size)
	began := time.Now()
	err := s.load(ctx, list, b)
	source.TimesOf(ctx).AddStorage(time.Since(began))
	if err != nil {
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

// load makes the regions resident on several goroutines. If ctx ends or the dataset
// is closed, it returns at once. A goroutine in a system call then continues, and
// [source.Calls] counts it until the system call returns.
func (s *Set) load(ctx context.Context, list []region, b *buffer) error {
	open, detach := s.calls.Join(ctx)
	defer detach()
	var next atomic.Int64
	workers := min(s.reads.AtOnce, len(list))
	err := guard.Parallel(open, "arrowio", workers, workers, func(int) error {
		if err := s.calls.Enter(); err != nil {
			return err
		}
		defer s.calls.Leave()
		for k := next.Add(1) - 1; k < int64(len(list)) && open.Err() == nil; k = next.Add(1) - 1 {
			if err := list[k].load(open, b); err != nil {
				next.Store(int64(len(list))) // the other goroutines take no more regions
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil || open.Err() == nil:
		return err
	case ctx.Err() != nil:
		return &status.Error{Code: status.CodeOf(ctx.Err()), Op: "arrowio", Msg: "the read was cancelled", Err: ctx.Err()}
	}
	return status.New(status.Cancelled, "arrowio", "the dataset was closed during the read")
}

// load makes a region resident. WillNeed requests exactly the region. Without it, the
// kernel reads the device's readahead, up to 8 MB, for a page that Populate misses.
func (r *region) load(ctx context.Context, b *buffer) error {
	if r.file.mapping != nil {
		r.file.mappable.WillNeed(r.from, r.to)
		return r.file.mappable.Populate(r.from, r.to)
	}
	return r.file.read(ctx, b.bytes[r.at:r.at+int(r.to-r.from)], r.from)
}
