package loader

import (
	"runtime"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options select what a loader delivers. Layout or BatchSize is required.
type Options struct {
	// Layout defines the arrays and the devices that hold them. It must have no
	// problem of severity "error".
	Layout *layout.Layout

	// BatchSize is the number of records of a batch, without a Layout. The batch then has
	// all fields with rows of one shape, each in one block.
	BatchSize int

	// Process is the process to load blocks for, counted from 0. A process that has no
	// devices in the mesh gets as many batches as the others, without blocks.
	Process int

	// Processes is the number of processes of the run, if some of them have no
	// devices in the layout's mesh. 0: the number of the layout's processes.
	Processes int

	// Order is the name of the order of records: "sequential", "shuffle", "local",
	// "blocks", "blocks:W", "blocks:W:B" (package sampler), or a full name, as a State has
	// it. The parameters of "local" and "blocks" come from State, if it has such an order,
	// else from Layout and the dataset; a later Restore changes them. "" is "shuffle" if
	// Shuffle is set, else the document's order, else "sequential".
	Order string

	// Shuffle delivers every epoch in a new random order, which depends only on
	// Seed. It is an error together with an Order that is not "shuffle".
	Shuffle bool

	// Seed is the seed of the order, within ±2^53. If Order, Shuffle and Seed are
	// all zero, the document's seed is used.
	Seed int64

	// Epochs is the total number of epochs, counted from epoch 0 also after a
	// restore. Loops end when the cursor's epoch reaches it. 0: every loop is one
	// epoch, or the rest of it. -1: loops do not end.
	Epochs int

	// Prefetch is the number of batches that are built ahead. 0: the number in the
	// layout document, by default 2. -1: none; each call of Next builds its batch.
	Prefetch int

	// State, if not nil, is the JSON of the State where the loader begins. It may
	// come from a run with any other mesh, batch size and remainder.
	State []byte

	// IgnoreDataset accepts a State of another dataset with the same number of
	// records.
	IgnoreDataset bool

	// Fill is the value that replaces nulls, by field: a bool or a number of any
	// Go type. Without it, a field that is known to have nulls is refused, and a null
	// that is not known before is an error of the batch that needs its record.
	Fill map[string]any

	// Allocator provides the memory of batches. nil: a batch.Heap.
	Allocator batch.Allocator

	// MaxHostBytes bounds the memory of all batches that are not released,
	// delivered or not. 0: no bound. At the bound the loader builds no batch
	// ahead, and a call of Next that would exceed it fails with
	// ResourceExhausted. The loader never waits for a release. With
	// layout.LoadGlobal the memory of whole batches also counts.
	MaxHostBytes int64

	// Workers is the number of goroutines that gather one batch. 0: chosen from the
	// size of a batch, GOMAXPROCS, and whether its rows take long to compute.
	Workers int
}

// setLayout makes a layout of all fields on one device, unless the options have a layout.
func (o *Options) setLayout(schema source.Schema) (err error) {
	switch {
	case o.Layout != nil && o.BatchSize != 0:
		return fail(status.InvalidArgument, "Options.BatchSize is %d, but Options.Layout says how large its batches are", o.BatchSize).
			WithHint("set one of the two")
	case o.Layout != nil:
		return nil
	case o.BatchSize < 0:
		return fail(status.InvalidArgument, "Options.BatchSize is %d, but must be positive", o.BatchSize)
	case o.BatchSize == 0:
		return fail(status.InvalidArgument, "there is no layout").WithHint("set Options.Layout, or Options.BatchSize for batches of all fields")
	}
	d := &layout.Document{Batch: &layout.BatchSpec{Size: []int{o.BatchSize}}}
	for _, f := range schema.Fields {
		if f.Ragged == 0 {
			d.Arrays = append(d.Arrays, layout.ArraySpec{Name: f.Name, RowShape: f.Shape, Type: f.Type})
		}
	}
	o.Layout, err = layout.New(d)
	return err
}

// prefetch returns how many batches are built ahead.
func (o *Options) prefetch() int {
	switch {
	case o.Prefetch > 0:
		return o.Prefetch
	case o.Prefetch < 0:
		return 0
	}
	return o.Layout.Prefetch()
}

// order returns the order's full name and seed. d is the document's dataset, or nil.
func (o *Options) order(d *layout.DatasetSpec, src source.Source) (name string, seed int64, err error) {
	name, seed = o.named(d), o.Seed
	if o.Shuffle && name != sampler.Shuffle {
		return "", 0, fail(status.InvalidArgument, "Options.Shuffle is set, but Options.Order is %q", o.Order).WithHint("leave one of them out")
	}
	if d != nil && o.Order == "" && !o.Shuffle && o.Seed == 0 {
		seed = d.Seed
	}
	if src.Facts().Drawn && name != sampler.Sequential {
		return "", 0, fail(status.InvalidArgument, "the order %q would undo the weights of a mixture", name).
			WithHint("leave it out, and let the mixture shuffle its datasets (Go: Mixing.Shuffle; Python: meshfeed.mix(…, shuffle=True))")
	}
	if sampler.IsDerived(name) {
		name, err = o.derived(name, src)
	}
	return name, seed, err
}

// named returns the name of the order as it is given, which may be a short one.
func (o *Options) named(d *layout.DatasetSpec) string {
	switch {
	case o.Order != "":
		return sampler.Full(o.Order)
	case o.Shuffle:
		return sampler.Shuffle
	case d != nil && d.Order != "":
		return d.Order
	}
	return sampler.Sequential
}

// derived returns the full name of an order such as "local". Its parameters come from the
// state, or else from the layout and the dataset. A state that cannot be parsed is reported
// by begin.
func (o *Options) derived(short string, src source.Source) (string, error) {
	if s, err := ParseState(o.State); err == nil && sampler.Accepts(short, s.Order) {
		return s.Order, nil
	}
	var units []int64
	if sampler.NeedsUnits(short) {
		var err error
		if units, err = source.UnitsOf(src); err != nil {
			return "", err
		}
	}
	return o.Layout.DerivedOrder(short, src.Len(), units)
}

// workerBytes is the smallest number of bytes of a batch per worker. With fewer
// bytes, a further goroutine costs more time than it saves.
const workerBytes = 4 << 20

// maxWorkers bounds Options.Workers.
const maxWorkers = 64

// workers returns how many goroutines gather a batch of the given size.
func (o *Options) workers(src source.Source, bytes int64) int {
	most := min(runtime.GOMAXPROCS(0), 8)
	switch {
	case o.Workers > 0:
		return o.Workers
	case src.Facts().Slow:
		return most
	}
	return int(max(1, min(bytes/workerBytes, int64(most))))
}
