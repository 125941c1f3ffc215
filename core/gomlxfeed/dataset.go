package gomlxfeed

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// DatasetOptions select the arrays that a trainer receives. Inputs is required.
type DatasetOptions struct {
	// Name appears in plots and progress bars; "meshfeed" if empty.
	Name string

	// Inputs and Labels name arrays of the layout, in the order of the model's
	// and the loss's parameters. The mask and the extras are arrays too. Arrays
	// that are in neither list are freed.
	Inputs, Labels []string

	// Context ends iterators that wait for a batch, with its error. Nil never
	// ends them.
	Context context.Context
}

// Dataset feeds GoMLX's trainer on one device. It is a train.Dataset. The trainer
// owns the tensors that it receives.
//
// An iterator yields one epoch of the loader, as Loop.RunEpochs and Trainer.Eval
// need it. It begins at the loader's cursor: after an iterator that was abandoned
// and after a resume it yields the rest of the epoch. If loader.Options.Epochs is
// -1, iterators have no end, as Loop.RunSteps needs it. An iterator that begins
// after the last of the loader's Epochs yields an error.
//
// A dataset needs a loader of its own, because an iterator moves the loader's
// cursor. So training and evaluation use one loader each. A checkpoint saves the
// loader's State beside the model. Closing the loader ends iterators with an
// error.
type Dataset struct{ feed }

// DistributedDataset feeds GoMLX's trainer on a mesh of several devices, with
// arrays sharded as in the layout. It is a train.DistributedDataset, for
// Loop.RunSteps and Trainer.Eval. It uses its loader as Dataset does.
//
// In this mode GoMLX replicates the variables, and the mesh splits the batch.
type DistributedDataset struct{ feed }

var (
	_ train.Dataset            = (*Dataset)(nil)
	_ train.DistributedDataset = (*DistributedDataset)(nil)
	_ train.HasShortName       = (*Dataset)(nil)
)

// NewDataset returns a dataset for a trainer on one device, from a loader with device 0 of
// d as its mesh. A loader with a Ring of d as its Allocator saves a copy.
func NewDataset(l *loader.Loader, d *Devices, o DatasetOptions) (*Dataset, error) {
	f, err := newFeed(l, d, o)
	if err != nil {
		return nil, err
	}
	if n := len(f.plan.assignment); n > 1 {
		return nil, fail("the mesh has %d devices, but a Dataset feeds one", n).WithHint("use NewDistributedDataset")
	}
	if n := f.plan.assignment[0]; n != 0 {
		return nil, unsupported("the mesh is device %d, but GoMLX's trainer computes on device 0", n).
			WithHint("make the mesh of device 0")
	}
	return &Dataset{*f}, nil
}

// NewDistributedDataset returns a dataset for a trainer on a mesh of at least two devices.
// A loader with a Ring of d as its Allocator saves a copy.
func NewDistributedDataset(l *loader.Loader, d *Devices, o DatasetOptions) (*DistributedDataset, error) {
	f, err := newFeed(l, d, o)
	if err != nil {
		return nil, err
	}
	if len(f.plan.assignment) == 1 {
		return nil, fail("the mesh has 1 device, but GoMLX distributes over at least 2").WithHint("use NewDataset")
	}
	return &DistributedDataset{*f}, nil
}

// Iter yields the batches of one epoch, or batches without end, as Dataset says.
func (s *Dataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for list, err := range s.all() {
			var b train.Batch
			if err == nil {
				b.Inputs, b.Labels = onlyShards(list[:s.inputs]), onlyShards(list[s.inputs:])
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// onlyShards returns the single shard of each array.
func onlyShards(list []*dtensor.Tensor) []*tensors.Tensor {
	shards := make([]*tensors.Tensor, len(list))
	for i, t := range list {
		shards[i] = t.Shards()[0]
	}
	return shards
}

// Iter yields an error, because a trainer that calls it would compute on one
// device.
func (s *DistributedDataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		yield(train.Batch{}, unsupported("dataset %q is for %d devices, but was asked for batches on one", s.name, len(s.plan.assignment)).
			WithHint("train with Loop.RunSteps, which is distributed; Loop.RunEpochs is not"))
	}
}

// DistributedIter yields the batches of one epoch, or batches without end, as
// Dataset says.
func (s *DistributedDataset) DistributedIter() iter.Seq2[train.DistributedBatch, error] {
	return func(yield func(train.DistributedBatch, error) bool) {
		for list, err := range s.all() {
			var b train.DistributedBatch
			if err == nil {
				b.Inputs, b.Labels = list[:s.inputs:s.inputs], list[s.inputs:]
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// Strategy returns distributed.AutoSharding.
func (s *DistributedDataset) Strategy() distributed.Strategy { return distributed.AutoSharding }

// DeviceAssignment returns the devices in mesh order.
func (s *DistributedDataset) DeviceAssignment() []compute.DeviceNum {
	return slices.Clone(s.plan.assignment)
}

// feed is the common part of both datasets.
type feed struct {
	l      *loader.Loader
	d      *Devices
	plan   *plan
	name   string
	arrays []int // numbers of the delivered arrays: the inputs, then the labels
	inputs int
	ctx    context.Context
}

func newFeed(l *loader.Loader, d *Devices, o DatasetOptions) (*feed, error) {
	p, err := newPlacer(l, d)
	if err != nil {
		return nil, err
	}
	defer p.close()
	f := &feed{l: l, d: d, plan: p.ring.plan, name: cmp.Or(o.Name, "meshfeed"), inputs: len(o.Inputs), ctx: o.Context}
	if f.ctx == nil {
		f.ctx = context.Background()
	}
	if len(o.Inputs) == 0 {
		return nil, fail("a trainer needs at least one input").WithHint("name some of %q in DatasetOptions.Inputs", f.plan.names())
	}
	return f, f.choose(slices.Concat(o.Inputs, o.Labels))
}

// choose looks up the arrays by name.
func (f *feed) choose(names []string) error {
	seen := map[int]bool{}
	for _, name := range names {
		i, ok := f.plan.find(name)
		if !ok {
			return noArray(f.plan, name)
		}
		if seen[i] {
			return fail("array %q is named twice, but a trainer frees each tensor that it gets", name).
				WithHint("let the model return the values that the loss needs, or deliver the field as two arrays")
		}
		seen[i] = true
		f.arrays = append(f.arrays, i)
	}
	return nil
}

// Name returns DatasetOptions.Name.
func (f *feed) Name() string { return f.name }

// ShortName returns the first three characters of the name, or all of a shorter
// name.
func (f *feed) ShortName() string {
	letters := []rune(f.name)
	return string(letters[:min(3, len(letters))])
}

// all yields the chosen arrays, batch after batch, to the end of the epoch if the
// loader's loops have an end. The receiver owns them.
func (f *feed) all() iter.Seq2[[]*dtensor.Tensor, error] {
	return func(yield func([]*dtensor.Tensor, error) bool) {
		p, err := newPlacer(f.l, f.d)
		if err != nil {
			yield(nil, err)
			return
		}
		defer p.close()
		endless := f.l.Len() < 0
		for b, err := range p.all(f.ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			list, err := b.take(f.arrays)
			last := !endless && b.Step().After.Epoch > b.Step().Epoch
			if !yield(list, err) || err != nil || last {
				return
			}
		}
		yield(nil, f.errEnd())
	}
}

// errEnd is the error of an iterator after its loader's last batch.
func (f *feed) errEnd() error {
	return status.Errorf(status.InvalidState, "gomlxfeed", "dataset %q has no further batch: its loader ended before epoch %d", f.name, f.l.Epoch()).
		WithHint("with loader.Options.Epochs = 0 each iterator yields another epoch")
}
