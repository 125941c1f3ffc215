// Package resident returns addresses at which spans of files can be read without
// a wait for the disk.
//
// Go cannot preempt a goroutine that waits in a page fault. The next garbage
// collection then stops the whole process until the disk answers. So before a
// byte of a mapping is read, a system call makes its page resident. A goroutine
// that waits in a system call holds up nothing else.
//
// A [Set] decides for all its files. Local files that fit in free memory
// together are mapped, and populated from first to last in the background.
// Until that is done, and for files whose mapping was forced, [Set.Acquire]
// populates the pages that a step needs. All other blobs are read into buffers,
// by many goroutines at a time. Both go in file order, whatever the order of the
// records. A hint ([Set.Ahead]) starts the reads a step earlier.
//
// The file README.md of package arrowio lists how a gather can end early.
package resident

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
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

	// Memory is how many bytes of memory are free. Mapped files may fill three
	// quarters of it.
	Memory int64

	// FaultHandler, if set, watches the mappings.
	FaultHandler FaultHandler
}

// FaultHandler handles reads of a mapping beyond the present end of its file.
// Without a handler, debug.SetPanicOnFault turns the signal into a panic. That
// fails in a library whose program has replaced Go's signal handlers.
type FaultHandler interface {
	// Watch watches a mapping until end is called, which must happen before
	// it is unmapped. On the first read of missing bytes the handler sets
	// faulted, which is read atomically. From then on missing bytes are zeros.
	Watch(mapping []byte) (faulted *uint32, end func())

	// Arm makes sure, at little cost, that the handler is installed.
	Arm()
}

// Set serves spans of files. It is safe for concurrent use. Its methods are called
// between Enter and Leave of calls.
type Set struct {
	files []*File
	armed FaultHandler // nil if there is none, or nothing is mapped
	calls *source.Calls
	ahead hints
}

// NewSet makes a set of the files of a dataset, whose calls it joins. Its
// goroutines are calls under way, too, so the release of calls may close the files.
func NewSet(calls *source.Calls, files []*File, o Options) (*Set, error) {
	s := &Set{files: files, calls: calls}
	whole := s.size() <= o.Memory/4*3
	switch o.IO {
	case "map":
	case "", "auto":
		if !whole || !s.mapByDefault() {
			return s, nil
		}
	default:
		return s, nil
	}
	for _, f := range s.files {
		if err := f.mapIn(whole, o.FaultHandler); err != nil {
			return nil, err
		}
	}
	s.armed = o.FaultHandler
	if whole {
		s.background(s.populate)
	}
	return s, nil
}

// Arm is called before bytes of mappings are read, so that [File.Check] fails
// afterwards if some were missing.
func (s *Set) Arm() {
	if s.armed != nil {
		s.armed.Arm()
	}
}

// size returns the size of all files together.
func (s *Set) size() (total int64) {
	for _, f := range s.files {
		total += f.Size()
	}
	return total
}

func (s *Set) mapByDefault() bool {
	for _, f := range s.files {
		if f.mappable == nil || !f.mappable.MapByDefault() {
			return false
		}
	}
	return true
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

// background runs fn on a goroutine whose context ends when the dataset is closed.
// The work only saves time later, so errors are dropped: a gather that needs the
// bytes meets and reports the same error.
func (s *Set) background(fn func(ctx context.Context) error) {
	if s.calls.Enter() != nil {
		return
	}
	guard.Go("arrowio", func() error {
		defer s.calls.Leave()
		ctx, stop := s.calls.Join(context.Background())
		defer stop()
		return fn(ctx)
	}, func(error) {})
}
