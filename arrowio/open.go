package arrowio

import (
	"runtime"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options say how files are opened. The zero value is good for most.
type Options struct {
	// IO says how rows come from the files: "map" gathers from a mapping,
	// "read" reads them, "auto" (or "") maps local files that fit in free
	// memory and reads the others.
	IO string

	// Shapes gives the row shape of fields that are stored as lists of
	// variable length, or in fewer dimensions than they have: a list of 3072
	// values may be a row of shape 32, 32, 3. Without it, the shape of lists
	// comes from the metadata that Hugging Face's datasets library writes, or
	// from the first record.
	Shapes map[string][]int

	// FaultHandler stands in for Go's handling of memory faults, where this is
	// part of a library and the program's signal handlers are not Go's alone.
	// Without it, debug.SetPanicOnFault has to do.
	FaultHandler FaultHandler

	open func(path string) (*resident.File, error) // for tests; nil for resident.Open
}

// FaultHandler sees to it that a read of a mapping whose file was cut gives
// zeros and a mark, and no signal. A gather that finds the mark fails.
type FaultHandler = resident.FaultHandler

func (o Options) openFile(path string) (*resident.File, error) {
	if o.open != nil {
		return o.open(path)
	}
	if err := regular(path); err != nil {
		return nil, err
	}
	return resident.Open(path)
}

// Open opens Arrow IPC files or streams as one dataset: paths, globs and
// directories. It is NotFound if there is nothing, DataLoss for damage,
// Unsupported for other formats, and Incompatible if schemas disagree.
func Open(pattern string, more ...string) (*Dataset, error) {
	return OpenFiles(append([]string{pattern}, more...), Options{})
}

// OpenFiles opens Arrow IPC files or streams as one dataset: see [Open].
func OpenFiles(patterns []string, o Options) (*Dataset, error) {
	switch o.IO {
	case "", "auto", "map", "read":
	default:
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "io=%q is not a way to read files", o.IO).
			WithHint(`use "auto", "map" or "read"`)
	}
	chosen, err := expand(patterns)
	if err != nil {
		return nil, err
	}
	files := make([]*file, len(chosen))
	err = parallel(len(chosen), func(i int) (err error) {
		files[i], err = openFile(chosen[i], o)
		return err
	})
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	d, err := newDataset(files, o)
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	return d, nil
}

func closeFiles(files []*file) {
	for _, f := range files {
		if f != nil {
			_ = f.content.Close()
		}
	}
}

// parallel calls do for 0 to n-1, several at a time, since each waits for a
// disk. It gives the error of the lowest number.
func parallel(n int, do func(i int) error) error {
	var mu sync.Mutex
	next, failed, first := 0, n, error(nil)
	fail := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if i < failed {
			failed, first = i, err
		}
	}
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next-1 < min(n, failed)
	}
	var wait sync.WaitGroup
	for range min(n, 4*runtime.GOMAXPROCS(0), 32) {
		wait.Add(1)
		guard.Go("arrowio", func() error {
			defer wait.Done()
			for i, ok := take(); ok; i, ok = take() {
				if err := guard.Call("arrowio", func() error { return do(i) }); err != nil {
					fail(i, err)
				}
			}
			return nil
		}, func(error) {})
	}
	wait.Wait()
	return first
}
