package resident

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// File is a blob of a set.
type File struct {
	blob.Blob
	mappable blob.Mappable // nil if the blob cannot be mapped
	mapping  []byte        // nil unless mapped; all of the blob
	whole    bool          // all of the mapping will be resident

	faulted *uint32 // not 0 once bytes of the mapping were missing; nil without a handler
	unwatch func()

	checked atomic.Pointer[time.Time] // of the last Recheck
	ready   atomic.Int64              // bytes from the beginning that are resident
}

// NewFile makes a file of a blob, which it closes.
func NewFile(b blob.Blob) *File {
	now, f := time.Now(), &File{Blob: b}
	f.mappable, _ = b.(blob.Mappable)
	f.checked.Store(&now)
	return f
}

// Base returns the address of the file's first byte once all of it is resident.
// After the dataset is closed, it is valid until the last call under way ends.
func (f *File) Base() (uintptr, bool) {
	return f.base(), f.mapping != nil && f.ready.Load() == f.Size()
}

func (f *File) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(f.mapping))) }

// mapIn maps the file and lets the handler, if there is one, watch the mapping.
func (f *File) mapIn(whole bool, h FaultHandler) (err error) {
	if f.mappable == nil {
		return status.Errorf(status.Unsupported, "arrowio", `%s: io "map" needs a local file, and Linux 5.14 or later`, f.Name()).
			WithHint("set io to auto or read").With("path", f.Name())
	}
	if f.mapping, err = f.mappable.Map(!whole); err != nil {
		return err
	}
	f.whole = whole
	if h != nil && len(f.mapping) > 0 {
		f.faulted, f.unwatch = h.Watch(f.mapping)
	}
	return nil
}

// Close closes the blob. Before the mapping goes, the handler stops watching it.
func (f *File) Close() error {
	if f.unwatch != nil {
		f.unwatch()
	}
	return f.Blob.Close()
}

// Check fails with DataLoss if the content may have changed since the file was
// opened, or if bytes of its mapping were missing when they were read, so that
// zeros may have been gathered. If several errors apply, truncation is reported
// first, then missing bytes, then another change.
func (f *File) Check() error {
	err := f.Blob.Check()
	if f.faulted == nil || atomic.LoadUint32(f.faulted) == 0 {
		return err
	}
	var e *status.Error
	if errors.As(err, &e) && e.Attr("truncated") != nil {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "%s could not be read from its mapping", f.Name()).
		WithHint("the disk failed, or the file was cut and grew again: open it again").With("path", f.Name())
}

// recheckAfter is the shortest time between two checks of a file that is read.
// A mapped file is checked after every step.
const recheckAfter = time.Second

// Recheck calls Check, unless that happened less than recheckAfter ago.
func (f *File) Recheck() error {
	now, last := time.Now(), f.checked.Load()
	if now.Sub(*last) < recheckAfter {
		return nil
	}
	if kept := now; !f.checked.CompareAndSwap(last, &kept) {
		return nil
	}
	return f.Check()
}

// ReadFull fills p from offset on, as blob.ReadFull does. A file that ends early
// was truncated.
func (f *File) ReadFull(ctx context.Context, p []byte, offset int64) error {
	return f.explain(blob.ReadFull(ctx, f.Blob, p, offset))
}

// read is ReadFull for a goroutine that may wait for the disk.
func (f *File) read(ctx context.Context, p []byte, offset int64) error {
	n, err := f.ReadAt(ctx, p, offset)
	switch {
	case n == len(p):
		return f.Recheck()
	case err == nil, errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return f.explain(err)
}

// explain returns the error of a read with the name of the file.
func (f *File) explain(err error) error {
	var known *status.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return status.Errorf(status.IO, "arrowio", "%s: %w", f.Name(), err).With("path", f.Name())
	}
	if changed := f.Check(); changed != nil {
		return changed
	}
	return status.Errorf(status.DataLoss, "arrowio", "%s ends before the %d bytes that it had when it was opened", f.Name(), f.Size()).With("path", f.Name())
}

// pieceBytes is how much is populated at a time. Meanwhile the kernel holds the
// lock of the process's address space: a thread that maps memory waits, and then
// every thread that touches new memory. Measured on a busy machine, they wait for
// half a second with pieces of 64 MiB and for 15 ms with these. The disk sees no
// difference, because the kernel reads ahead in smaller pieces anyway.
const pieceBytes = 4 << 20

// populateAll makes the file resident from the beginning to the end, until ctx
// ends.
func (f *File) populateAll(ctx context.Context) error {
	for at := int64(0); at < f.Size(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(at+pieceBytes, f.Size())
		if err := f.mappable.Populate(at, end); err != nil {
			return err
		}
		f.ready.Store(end)
		at = end
	}
	return nil
}

// resident reports whether a span has been populated.
func (f *File) resident(s Span) bool {
	return f.mapping != nil && s.Offset+int64(s.Length) <= f.ready.Load()
}

// covers reports whether a span lies in the file.
func (f *File) covers(s Span) bool {
	return s.Offset >= 0 && s.Length >= 0 && s.Offset <= f.Size()-int64(s.Length)
}
