// Package blob holds the two interfaces through which meshfeed reads bytes. An
// [Opener] finds files or objects by name, and a [Blob] is an open file or object.
// Package local implements both for the file system. Everything above it, from
// globs to checksums, is written against these interfaces and calls no function
// of package os.
//
// A new kind of storage implements Opener and Blob and passes the tests of
// package blobtest. Name and Identity distinguish its blobs. If the content has
// changed since the blob was opened, ReadAt or Check fails. [Mappable] is
// optional: blobs without it are read into buffers.
package blob

import (
	"context"
	"errors"
	"io"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Opener finds and opens blobs by name. Names have the syntax of package
// path/filepath. Errors have a code of package status, mention the name that
// they are about, and have it as the attribute "path".
type Opener interface {
	// Stat describes the file or directory of a name. The error is NotFound
	// if there is none.
	Stat(ctx context.Context, name string) (Info, error)

	// List returns the entries of a directory in the order of their names.
	List(ctx context.Context, dir string) ([]Entry, error)

	// Open opens the blob with a name for reading.
	Open(ctx context.Context, name string) (Blob, error)
}

// Info describes a file or directory.
type Info struct {
	Dir  bool   // it is a directory
	Full string // the complete name, such as an absolute path
}

// Entry is an entry of a directory.
type Entry struct {
	Name string // without the directory
	Dir  bool   // it is a directory, or a link to one
}

// Blob is an open file or object. It is safe for concurrent use.
type Blob interface {
	// Name returns the name that errors use.
	Name() string

	// Size returns the number of bytes at the time of opening.
	Size() int64

	// Identity is the same for two blobs if they are one file or object with
	// one content, even if they were opened under different names.
	Identity() string

	// ReadAt fills p with the bytes from offset on, as io.ReaderAt does. It
	// returns soon after ctx ends, unless the disk hangs. A caller that must
	// not wait for such a disk uses [ReadFull].
	ReadAt(ctx context.Context, p []byte, offset int64) (int, error)

	// Check fails with DataLoss if the content may have changed since the
	// blob was opened. A loader calls it after every step, so it must be cheap.
	Check() error

	// Close releases the blob and its mapping. It is called once, when no
	// call is in progress.
	Close() error
}

// Mappable is a blob that can be mapped into memory.
type Mappable interface {
	Blob

	// MapByDefault is false if the blob should be mapped only if the user asks
	// for it. A reason is that page faults may wait for a network, or that the
	// system has no call that populates a mapping.
	MapByDefault() bool

	// Map maps the whole blob until Close. If only parts of it will be
	// resident at a time, the system should not read ahead on its own.
	Map(inParts bool) ([]byte, error)

	// Populate makes the bytes [from, to) of the mapping resident and waits
	// for them, by a system call and not by page faults.
	Populate(from, to int64) error

	// WillNeed asks the system to read the bytes [from, to) and does not
	// wait for them.
	WillNeed(from, to int64)
}

// Versioned is a blob whose content has a name that lasts longer than the process. Decoded
// units of other blobs are not kept on disk.
type Versioned interface {
	Blob

	// Version returns a text that is different after every change of the content. It
	// may change without one.
	Version() string
}

// ReadFull fills p with the bytes from offset on. It returns as soon as ctx
// ends, even if the disk hangs. Then a read may still write to p, so the caller must
// not use p again. If the blob ends early, the error is io.ErrUnexpectedEOF.
func ReadFull(ctx context.Context, b Blob, p []byte, offset int64) error {
	n, err := readAt(ctx, b, p, offset)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadError returns the error for a blob that could not be read, with its name. Its code is
// Cancelled or Timeout if err comes from the end of a context, otherwise IO.
func ReadError(name string, err error) error {
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ended) {
			e := &status.Error{Code: status.CodeOf(ended), Op: "arrowio", Msg: name + ": the read was cancelled", Err: err}
			return e.With("path", name)
		}
	}
	return status.Errorf(status.IO, "arrowio", "%s: %w", name, err).With("path", name)
}

// Reader returns an io.ReaderAt over a blob. Its reads end with ctx as those of
// ReadFull do.
func Reader(ctx context.Context, b Blob) io.ReaderAt { return reader{ctx, b} }

type reader struct {
	ctx  context.Context
	blob Blob
}

// ReadAt implements io.ReaderAt.
func (r reader) ReadAt(p []byte, offset int64) (int, error) {
	return readAt(r.ctx, r.blob, p, offset)
}

// readAt reads on a goroutine of its own, unless ctx never ends.
func readAt(ctx context.Context, b Blob, p []byte, offset int64) (n int, err error) {
	if ctx.Done() == nil {
		return b.ReadAt(ctx, p, offset)
	}
	read := make(chan int, 1)
	err = guard.Parallel(ctx, "arrowio", 1, 1, func(int) error {
		n, err := b.ReadAt(ctx, p, offset)
		read <- n
		return err
	})
	if ended := ctx.Err(); ended != nil && err != nil {
		return 0, &status.Error{Code: status.CodeOf(ended), Op: "arrowio", Msg: "the read was cancelled", Err: ended}
	}
	select {
	case n = <-read:
	default: // ReadAt panicked, and err reports it
	}
	return n, err
}
