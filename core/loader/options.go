package loader

import (
	"runtime"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// Options say what a loader delivers. Layout is needed, everything else has a
// useful zero value.
type Options struct {
	// Layout says what the arrays are and who holds them. It must be without
	// problems of severity "error".
	Layout *layout.Layout

	// Process says whose blocks to load, from 0 to the number of processes
	// without one. A process that has no devices in the mesh gets batches
	// without blocks, as many as all others.
	Process int

	// Processes is how many processes the run has, if some with higher numbers
	// than those of the layout take part. 0: as many as the layout has.
	Processes int

	// Order names the order of records (sampler.Names, sampler.Local), or is
	// "local" for the local order of State, if that has one, and else of Layout;
	// a later Restore changes its parameters. Left empty, it is sampler.Shuffle
	// if Shuffle is set, else the document's, else sequential.
	Order string

	// Shuffle delivers every epoch in a fresh random order that depends on
	// Seed alone.
	Shuffle bool

	// Seed of the order, within ±2^53. It counts where Order, Shuffle or Seed
	// itself is set; otherwise the document's seed does.
	Seed int64

	// Epochs is the number of epochs in all, counted from epoch 0 also after
	// a restore: loops end when the cursor's epoch has reached it. 0: every
	// loop is one epoch, or the rest of it. -1: loops do not end.
	Epochs int

	// Prefetch is how many batches may stand ready undelivered. 0 takes the
	// document's, which is 2 if it says nothing; -1 makes each batch when it
	// is asked for.
	Prefetch int

	// State, if not nil, is where to begin: JSON that State gave, of this or
	// any other topology, batch size and remainder.
	State []byte

	// IgnoreDataset accepts a State of another dataset with as many records.
	IgnoreDataset bool

	// Fill says, per field, what replaces nulls: a bool or a number of any Go
	// type. A field that may hold nulls needs one.
	Fill map[string]any

	// Allocator makes the memory of batches; nil for a batch.Heap of the
	// loader's own.
	Allocator batch.Allocator

	// MaxHostBytes bounds the memory of all batches that are not yet released,
	// delivered or not; 0 for no bound. At the bound the loader stops reading
	// ahead, and a Next that would need more fails with ResourceExhausted. It
	// never waits for a release. With layout.LoadGlobal the memory in which
	// batches are gathered whole counts too.
	MaxHostBytes int64

	// Workers is how many goroutines share the gathering of one batch; 0
	// chooses by the size of a batch and the number of processors.
	Workers int
}

// prefetch gives the number of batches that may stand ready.
func (o *Options) prefetch() int {
	switch {
	case o.Prefetch > 0:
		return o.Prefetch
	case o.Prefetch < 0:
		return 0
	}
	return o.Layout.Prefetch()
}

// order gives the order's name and seed; d is the document's dataset, or nil.
func (o *Options) order(d *layout.DatasetSpec) (name string, seed int64, err error) {
	name, seed = sampler.Sequential, o.Seed
	if d != nil && d.Order != "" {
		name = d.Order
	}
	if d != nil && o.Order == "" && !o.Shuffle && o.Seed == 0 {
		seed = d.Seed
	}
	switch {
	case o.Order == layout.OrderLocal:
		name, err = o.local()
	case o.Order != "":
		name = o.Order
	case o.Shuffle:
		name = sampler.Shuffle
	}
	return name, seed, err
}

// local gives the name of the local order: the state's, or else the layout's.
func (o *Options) local() (string, error) {
	if s, err := ParseState(o.State); err == nil && sampler.IsLocal(s.Order) {
		return s.Order, nil // a state that is none is refused elsewhere
	}
	return o.Layout.LocalOrder()
}

// workerBytes is how much of a batch is worth a goroutine of its own: below
// it, starting one and waiting for it costs more than it saves.
const workerBytes = 4 << 20

const maxWorkers = 64

// workers gives the number of goroutines for batches of this size.
func (o *Options) workers(bytes int64) int {
	if o.Workers > 0 {
		return o.Workers
	}
	return int(max(1, min(bytes/workerBytes, int64(runtime.GOMAXPROCS(0)), 8)))
}
