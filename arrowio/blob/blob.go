// Package blob has the interfaces of a storage. An [Opener] finds files or objects by name, and a
// [Blob] is an open file or object. Package local implements both for the files of this machine.
// All code above it, from globs to checksums, uses these interfaces and never calls packages os
// and path/filepath.
//
// # How to write an opener
//
// An opener decides what its names look like, how to find blobs, and how to read them:
//
//   - Names: embed [Slashes], unless names are not separated by slashes.
//   - Search: Stat, List and Glob. If the storage returns all names in one listing, put them into
//     a [Catalog], which implements the three methods and the names.
//   - Reads: Open returns a [Blob]. Its Identity is equal for equal objects, and its reads or Check
//     fail after the object changed. [Hints] say which reads the storage serves well.
//   - Optional: a [Versioned] blob may have its decoded units kept on disk, a [Stamped] blob has a
//     fingerprint without reads, and a [Mappable] blob is mapped into memory. All other blobs are read
//     into buffers.
//
// An opener must pass the tests of package blobtest. The example of arrowio.Options has an opener
// over a map of bytes in 40 lines.
//
// A search calls Glob once for each glob, and List once for each directory that it looks into.
// Entries go back to Open, so that an opener can use the size and the version of the listing
// instead of asking again.
package blob

import (
	"context"
	"errors"
	"io"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Opener finds and opens blobs by name. It is safe for concurrent use. Errors have a code of
// package status, mention the name that they are about, and have it as the attribute "path".
type Opener interface {
	Names

	// Stat describes the blob or directory with a name. The name of the entry is the
	// same name. The error is NotFound if neither exists, and Unsupported for a name
	// that this opener can never open. If a request is slow, a name with *, ?, [ or {
	// may be NotFound without one: it is a glob or a range of numbers then.
	Stat(ctx context.Context, name string) (Entry, error)

	// List returns the blobs and directories in a directory in the order of their
	// names, which have no directory.
	List(ctx context.Context, dir string) ([]Entry, error)

	// Glob returns the blobs and directories that a pattern matches, with names that
	// Open takes, in any order. A pattern is a name with parts in the syntax of
	// path.Match. A part matches names that begin with a dot, too. A directory
	// that does not exist has no match.
	Glob(ctx context.Context, pattern string) ([]Entry, error)

	// Open opens the blob of an entry for reading. The name is one of Stat, Glob or
	// Join. If the entry has a version, the blob must have that version, or reads fail.
	Open(ctx context.Context, e Entry) (Blob, error)

	// Hints returns which reads suit the blobs of this opener.
	Hints() Hints
}

// Names is the syntax of names. [Slashes] implements it for most storages.
type Names interface {
	// Join returns the name of what lies below a directory. The second name may have
	// several parts, separated by slashes.
	Join(dir, below string) string

	// Split returns the directory and the last part of a name. The directory of a
	// name without one is what List takes, such as ".". A name without a further
	// directory, such as "/", is its own directory.
	Split(name string) (dir, base string)

	// Full returns the complete form of a name, such as an absolute path.
	Full(name string) string
}

// Entry is what a storage says about a blob or directory without opening it.
type Entry struct {
	Name string
	Dir  bool // it is a directory, or a link to one

	// Version is different after every change of the content, such as an ETag. It is empty if
	// a listing of the storage does not have it. Size is the number of bytes, if there is a
	// version.
	Version string
	Size    int64
}

// Hints say which reads a storage serves well. They change how many reads there are and when, but
// never what is read.
type Hints struct {
	// Gap is the most bytes between two pieces that one read still takes together,
	// because reading them costs less than a second read.
	Gap int64

	// Size is the number of bytes of an efficient read: a longer read gains nothing.
	// Pieces are taken together up to this size, and longer ones are read whole.
	Size int64

	// AtOnce is the most reads in progress. It bounds reads of metadata, of samples and of
	// rows, and does not depend on the number of processors.
	AtOnce int

	// Ahead is the most bytes that are fetched before their decoding, so that decoding does
	// not wait. 0 is right for a disk: the system reads ahead, and keeps what it has read.
	Ahead int64
}

// Check returns an error of code InvalidArgument for hints with which nothing could be read.
func (h Hints) Check() error {
	if h.AtOnce < 1 || h.Size < 1 || h.Gap < 0 || h.Ahead < 0 {
		return status.Errorf(status.InvalidArgument, "blob", "the opener has the hints %+v, but AtOnce and Size must be 1 or more, and Gap and Ahead 0 or more", h).
			WithHint("return blob.Disk if nothing else is known")
	}
	return nil
}

// Fetches reports whether reads take so long that bytes are fetched before their decoding.
func (h Hints) Fetches() bool { return h.Ahead > 0 }

// ReadPieces fills p with the bytes from offset on by reads of up to each bytes, of which h.AtOnce run side by side.
func (h Hints) ReadPieces(ctx context.Context, p []byte, offset int64, each int, read func(ctx context.Context, p []byte, offset int64) error) error {
	pieces := (len(p) + each - 1) / each
	return guard.Parallel(ctx, "arrowio", pieces, min(pieces, h.AtOnce), func(i int) error {
		from := i * each
		return read(ctx, p[from:min(from+each, len(p))], offset+int64(from))
	})
}

// Disk are the hints for the disks of this machine.
var Disk = Hints{Gap: 4 << 10, Size: 1 << 20, AtOnce: 32}

// farAtOnce is the most reads at once from a server on another machine.
const farAtOnce = 16

// Far are the hints for a server on another machine. A read of 8 MiB takes little longer than one of 1 MiB, and one
// connection has a fraction of the rate of the network.
var Far = Hints{Gap: 1 << 20, Size: 8 << 20, AtOnce: farAtOnce, Ahead: 128 << 20}

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

// Versioned is a blob with a version that lasts longer than the process. Decoded units of other
// blobs are not kept on disk.
type Versioned interface {
	Blob

	// Version returns a text that is different for every content: after a change, and for
	// other blobs of any opener. So it has the name if the storage numbers the
	// versions of each name. It may change although the content is the same.
	Version() string
}

// Stamped is a blob with a text of its storage that changes with its content, such as an ETag. A
// fingerprint takes the stamp of each file instead of samples of its bytes, if all files have one.
type Stamped interface {
	Blob

	// Stamp returns the text. It does not depend on the name of the blob.
	Stamp() string
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

// Reader returns an io.ReaderAt over a blob. Its reads end with ctx, like the reads of
// ReadFull.
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
