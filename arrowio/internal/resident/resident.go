// Package resident returns addresses of spans of files that can be read without
// waiting for the disk.
//
// Go cannot preempt a goroutine that waits in a page fault. The next garbage
// collection then stops the whole process until the disk answers. So before a
// byte of a mapping is read, a system call makes its page resident. A goroutine
// that waits in a system call does not delay others.
//
// A [Set] maps either all its files or none. If all are local and together fit in
// free memory, they are mapped, and a goroutine makes them resident from first to
// last. The option "map" also maps files that do not fit. If a page is not resident
// yet, [Set.Acquire] makes it resident when a step needs it.
//
// Files that are not mapped are read into buffers, by many goroutines at a time. All
// reads are in file order, whatever the order of the records. A hint ([Set.Ahead])
// starts the reads a step earlier.
//
// The README.md of package arrowio lists every way in which a gather can end.
package resident

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Span is a piece of a file.
type Span struct {
	File   int // index into the files of the set
	Offset int64
	Length int
}

// Extent is a range of a file's bytes.
type Extent struct{ Offset, Length int64 }

// Options choose how the files of a set are read.
type Options struct {
	// IO is "map" (all files), "read" (into buffers), or "auto". "auto" and "" choose
	// by the rule in the package comment.
	IO string

	// Reads says how files that are not mapped are read. Nil stands for a disk.
	Reads *Reads

	// Memory is the number of free bytes of memory. The files fit if they take at
	// most three quarters of it together.
	Memory int64

	// FaultHandler, if set, watches the mappings.
	FaultHandler FaultHandler
}

// FaultHandler handles reads of a mapping beyond the present end of its file.
// Without a handler, debug.SetPanicOnFault turns the signal into a panic. That
// fails in a library if its program has replaced Go's signal handlers.
type FaultHandler interface {
	// Watch watches a mapping until end is called, which must happen before
	// it is unmapped. On the first read of missing bytes the handler sets
	// faulted, which is read atomically. From then on missing bytes are zeros.
	Watch(mapping []byte) (faulted *uint32, end func())

	// Arm installs the handler again if another library has replaced it. It is
	// cheap, because every gather from a mapping calls it.
	Arm()
}

// Set makes spans of files readable. It is safe for concurrent use. The caller must
// be between Enter and Leave of calls, so that the files stay open.
type Set struct {
	files []*File
	reads *Reads
	armed FaultHandler // watches the mappings; nil without a handler or a mapping
	calls *source.Calls
	ahead hints

	growing *Options     // options of a growing set
	mapped  atomic.Int64 // bytes of a growing set that are resident
}

// NewSet returns the set of the files of a dataset. The goroutines of the set count as
// calls of the dataset. Therefore calls releases the files only after their last read.
func NewSet(calls *source.Calls, files []*File, o Options) (*Set, error) {
	s := &Set{files: files, calls: calls, reads: cmp.Or(o.Reads, diskReads)}
	fits := s.size() <= o.Memory/4*3
	switch o.IO {
	case "map":
	case "", "auto":
		if !fits || slices.ContainsFunc(s.files, func(f *File) bool { return !f.mapByDefault() }) {
			return s, nil
		}
	default:
		return s, nil
	}
	for _, f := range s.files {
		if err := f.mapIn(fits, o.FaultHandler); err != nil {
			return nil, err
		}
	}
	s.armed = o.FaultHandler
	if fits {
		s.background(s.populate)
	}
	return s, nil
}

// NewGrowing returns a set of n files that [Set.Put] adds later. Each is mapped by itself:
// "auto" maps it if it fits in memory together with the files that are mapped already.
func NewGrowing(calls *source.Calls, n int, o Options) *Set {
	return &Set{files: make([]*File, n), calls: calls, reads: cmp.Or(o.Reads, diskReads), growing: &o, armed: o.FaultHandler}
}

// Put adds file i to a growing set, and makes it resident if it fits in memory. Spans of the
// file may be acquired after it returns. One call may run at a time for each file. The
// caller closes the file.
func (s *Set) Put(ctx context.Context, i int, f *File) error {
	o, size := s.growing, f.Size()
	fits := s.mapped.Add(size) <= o.Memory/4*3
	if !fits {
		s.mapped.Add(-size)
	}
	mapIt := o.IO == "map" || o.IO != "read" && fits && f.mapByDefault()
	if mapIt {
		if err := f.mapIn(fits, o.FaultHandler); err != nil {
			return err
		}
		if fits {
			if err := f.populateAll(ctx); err != nil {
				return err
			}
		}
	}
	s.files[i] = f
	return nil
}

// Arm must be called before bytes of mappings are read. If bytes were missing,
// [File.Check] then fails after the read.
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

// populate makes the files resident, from first to last.
func (s *Set) populate(ctx context.Context) error {
	for _, f := range s.files {
		if err := f.populateAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// background runs fn on a goroutine. Its context ends when the dataset is closed.
// The work only saves time later, so errors are dropped. A gather that needs the
// bytes reports the same error.
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
