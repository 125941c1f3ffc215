// Package resident gives the addresses of pieces of files, and sees to it that
// reading there does not wait for a disk.
//
// A goroutine that waits in a page fault cannot be preempted: the next garbage
// collection stops the whole process until the disk has answered. So no byte of
// a mapping is touched before the kernel has been asked, in a system call, to
// make its page resident; a system call that waits holds up nobody else.
//
// A [Set] chooses for all its files: local files that fit in free memory
// together are mapped, and populated from first to last in the background;
// until then, and for files forced into a mapping, the pages that a step needs
// are populated first ([Set.Acquire]). Larger files, network file systems,
// readers that are no files, and systems other than Linux are read into buffers
// by many goroutines at a time. Both go in file order, whatever the order of
// the records, and a hint ([Set.Ahead]) starts the reads a step earlier.
//
// A file that shrinks is an error: of the system call that populates or reads
// it, or of [File.Check] after a step. What still goes wrong in between is a
// fault: a [FaultHandler] gives zeros and a mark for [File.Check], and where
// there is none guard.Fault turns it into an error.
package resident

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Span is a piece of a file.
type Span struct {
	File   int // index into the files of the set
	Offset int64
	Length int
}

// Options choose how the files of a set are read.
type Options struct {
	// IO is "map", "read" or "auto" (also ""), as the package comment says.
	IO string

	// Memory is the memory in bytes that the files may fill when they are
	// mapped; 0 asks the system, and counts the limits of control groups.
	Memory int64

	// FaultHandler, if set, watches the mappings.
	FaultHandler FaultHandler
}

// FaultHandler makes an error of what would be a signal: the read of a mapping
// beyond the end that its file has by now. Go's debug.SetPanicOnFault does so,
// too, but in a library the program may have replaced Go's signal handlers.
type FaultHandler interface {
	// Watch watches a mapping until end is called, which must come before it
	// is unmapped. Bytes that are not there are read as zeros from then on,
	// after faulted, which is read atomically, was set.
	Watch(mapping []byte) (faulted *uint32, end func())

	// Arm makes sure, at little cost, that the handler is in place.
	Arm()
}

// Set serves spans of files. It is safe for concurrent use.
type Set struct {
	files []*File
	armed FaultHandler // nil if there is none, or nothing is mapped
	gate  *source.Gate // inside are leases and goroutines
	ahead hints
}

// NewSet takes over the files, which nobody else closes from now on, also if
// it fails. The files may be read with ReadAt before and after.
func NewSet(files []*File, o Options) (*Set, error) {
	s := &Set{files: files}
	s.gate = source.NewGate("arrowio", "dataset", s.release)
	if err := s.choose(o); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// choose maps the files or leaves them to be read.
func (s *Set) choose(o Options) error {
	switch o.IO {
	case "read":
		return nil
	case "", "auto":
		if !canPopulate() || s.anyRemote() || !s.fits(o.Memory) {
			return nil
		}
	case "map":
		if !canPopulate() {
			return status.New(status.Unsupported, "arrowio", `io "map" needs Linux 5.14 or later`).WithHint(`use io "auto" or "read"`)
		}
	default:
		return status.Errorf(status.InvalidArgument, "arrowio", `io must be "auto", "map" or "read", not %q`, o.IO)
	}
	fits := s.fits(o.Memory)
	for _, f := range s.files {
		if err := f.mapIn(!fits); err != nil {
			return err
		}
		f.whole = fits
		f.watch(o.FaultHandler)
	}
	s.armed = o.FaultHandler
	if fits {
		s.background(s.populate)
	}
	return nil
}

// Arm is called before bytes of mappings are touched, so that [File.Check]
// finds out afterwards if some were not there.
func (s *Set) Arm() {
	if s.armed != nil {
		s.armed.Arm()
	}
}

// smallBytes of files always fit; the system is not asked.
const smallBytes = 16 << 20

// fits says whether the files fit in memory, which is found out where it is 0.
func (s *Set) fits(memory int64) bool {
	total := int64(0)
	for _, f := range s.files {
		total += f.size
	}
	if memory == 0 && total <= smallBytes {
		return true
	}
	if memory == 0 {
		memory = freeMemory(root())
	}
	return total <= memory/4*3
}

func (s *Set) anyRemote() bool {
	for _, f := range s.files {
		if f.remote() {
			return true
		}
	}
	return false
}

// populate makes the files resident, from first to last.
func (s *Set) populate(ctx context.Context) error {
	for _, f := range s.files {
		if err := f.populateAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// background runs fn on a goroutine of its own, which keeps files and mappings
// alive, until Close ends its context. What it does is only done early: an
// error comes again, and is reported, where somebody needs the bytes.
func (s *Set) background(fn func(ctx context.Context) error) {
	if s.gate.Enter() != nil {
		return
	}
	guard.Go("arrowio", func() error {
		defer s.gate.Leave()
		ctx, stop := s.gate.Join(context.Background())
		defer stop()
		return fn(ctx)
	}, func(error) {})
}

// release closes the files, which nobody uses any more.
func (s *Set) release() error {
	for _, f := range s.files {
		_ = f.Close()
	}
	return nil
}

// Close cancels everything that waits, and waits for the last user at most one
// second. A read that the kernel has not returned from, and a lease that is
// still held, go on alone: the last of them releases files and mappings.
func (s *Set) Close() error { return s.gate.Close(source.Patience) }
