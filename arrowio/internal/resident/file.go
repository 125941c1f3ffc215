package resident

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// File is one blob of a Set, with its memory mapping if it is mapped.
type File struct {
	blob.Blob
	mappable blob.Mappable // nil if the blob cannot be mapped
	mapping  []byte        // the bytes of the whole blob; nil unless mapped
	whole    bool          // all of the mapping will be resident

	faulted *uint32 // not 0 after a page could not be read; nil without a handler
	unwatch func()  // removes the mapping from the handler

	reads *Reads  // plans the reads of its storage
	held  heldSet // bytes that are in memory without a mapping

	checked atomic.Pointer[time.Time] // the time of the last Recheck that called Check
	ready   atomic.Int64              // the number of first bytes that are resident
}

// NewFile makes a file from a blob of a storage, or of a disk if r is nil. File.Close closes
// the blob.
func NewFile(b blob.Blob, r *Reads) *File {
	now, f := time.Now(), &File{Blob: b, reads: cmp.Or(r, diskReads)}
	f.mappable, _ = b.(blob.Mappable)
	f.checked.Store(&now)
	return f
}

// Fetches reports whether a [Fetcher] reads the file before its bytes are needed.
func (f *File) Fetches() bool { return f.reads.Ahead > 0 }

// Base returns the address of the mapping, and whether the whole file is resident.
// After the dataset is closed, the address is valid until the last call under way
// ends.
func (f *File) Base() (uintptr, bool) {
	return f.base(), f.mapping != nil && f.ready.Load() == f.Size()
}

func (f *File) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(f.mapping))) }

func (f *File) mapByDefault() bool { return f.mappable != nil && f.mappable.MapByDefault() }

// mapIn maps the file. If there is a fault handler, it watches the mapping.
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

// Close closes the blob, which removes the mapping. Before that, the handler stops
// watching the mapping.
func (f *File) Close() error {
	if f.unwatch != nil {
		f.unwatch()
	}
	return f.Blob.Close()
}

// Check fails with DataLoss if the content may have changed since the file was
// opened. It also fails if a page of its mapping could not be read, because zeros may
// have been gathered instead. If several errors apply, truncation is reported first,
// then a missing page, then another change.
func (f *File) Check() error {
	err := f.Blob.Check()
	if !f.HasFaulted() {
		return err
	}
	if e, ok := errors.AsType[*status.Error](err); ok && e.Attr("truncated") != nil {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "%s could not be read from its mapping", f.Name()).
		WithHint("the disk failed, or the file was cut and grew again: open it again").With("path", f.Name())
}

// HasFaulted reports whether the fault handler has found that a page of the mapping could
// not be read. It costs less than Check.
func (f *File) HasFaulted() bool { return f.faulted != nil && atomic.LoadUint32(f.faulted) != 0 }

// recheckAfter is the shortest time between two checks by Recheck, for files that
// are read without a mapping. A mapped file is checked after every step.
const recheckAfter = time.Second

// Recheck calls Check, unless that happened less than recheckAfter ago.
func (f *File) Recheck() error {
	now, last := time.Now(), f.checked.Load()
	if now.Sub(*last) < recheckAfter {
		return nil
	}
	// Only kept escapes to the heap, so a call that returns above allocates nothing.
	if kept := now; !f.checked.CompareAndSwap(last, &kept) {
		return nil
	}
	return f.Check()
}

// ReadFull fills p from offset on, as blob.ReadFull does. A file that ends early
// was truncated.
func (f *File) ReadFull(ctx context.Context, p []byte, offset int64) error {
	return f.explain(blob.ReadFull(ctx, f, p, offset))
}

// read is like ReadFull, but waits for the disk even if the disk hangs. After a
// successful read it calls Recheck.
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

// explain returns the error of a read with the name of the file. If the file ended
// early, it returns the reason.
func (f *File) explain(err error) error {
	switch _, known := errors.AsType[*status.Error](err); {
	case err == nil, known:
		return err
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return status.Errorf(status.IO, "arrowio", "%s: %w", f.Name(), err).With("path", f.Name())
	}
	if changed := f.Check(); changed != nil {
		return changed
	}
	return status.Errorf(status.DataLoss, "arrowio", "%s ends before the %d bytes that it had when it was opened", f.Name(), f.Size()).With("path", f.Name())
}

// pieceBytes is the number of bytes that one call of Populate makes resident. During
// the call the kernel holds the lock of the process's address space. A thread that
// maps memory waits for it, and then every thread that touches new memory. Measured
// on a busy machine, they wait half a second with pieces of 64 MiB, and 15 ms with
// these. Reads of the disk are equally fast, because the kernel reads ahead in
// smaller pieces anyway.
const pieceBytes = 4 << 20

// populateAll makes the file resident, from the beginning to the end. It stops if ctx
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

// resident reports whether populateAll has made a span resident.
func (f *File) resident(s Span) bool {
	return f.mapping != nil && s.Offset+int64(s.Length) <= f.ready.Load()
}

// covers reports whether a span lies in the file.
func (f *File) covers(s Span) bool {
	return s.Offset >= 0 && s.Length >= 0 && s.Offset <= f.Size()-int64(s.Length)
}
