package gomlxfeed

import (
	"context"
	"iter"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

// DatasetOptions say what a trainer gets of a batch. Inputs is needed.
type DatasetOptions struct {
	// Name is shown in plots and progress bars; "meshfeed" if empty.
	Name string

	// Inputs and Labels name arrays of the layout, in the order in which the
	// model and the loss take them. The mask and the extras are arrays too.
	// Arrays that neither names are freed.
	Inputs, Labels []string

	// Epochs is how many epochs every iterator yields, each from the start, as
	// an evaluation wants it. 0, for training: an iterator goes on where the one
	// before it was left, without end; or to the end of the loader's own Epochs.
	Epochs int

	// Context ends iterators that wait for a batch, with its error; nil never
	// does.
	Context context.Context
}

// Dataset feeds GoMLX's trainer on one device. It is a train.Dataset; the
// trainer owns the tensors that it gets.
//
// The loader is the dataset's alone: an iterator moves its cursor, and its
// State is what a checkpoint saves beside the model. So training and evaluation
// have a loader each. Closing the loader ends iterators with an error.
type Dataset struct{ feed }

// DistributedDataset feeds GoMLX's trainer on a mesh of several devices, with
// arrays that are sharded as the layout says. It is a train.DistributedDataset,
// for Loop.RunSteps and Trainer.Eval; what is said of Dataset holds here too.
//
// GoMLX trains so with replicated variables: the mesh splits the batch.
type DistributedDataset struct{ feed }

var (
	_ train.Dataset            = (*Dataset)(nil)
	_ train.DistributedDataset = (*DistributedDataset)(nil)
	_ train.HasShortName       = (*Dataset)(nil)
)

// NewDataset feeds a trainer on one device from the batches of a loader, whose
// mesh is that device. A loader that was given a Ring of d saves a copy.
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

// NewDistributedDataset feeds a trainer on the devices of a mesh, at least two,
// from the batches of a loader. A loader that was given a Ring of d saves a
// copy.
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

// Iter gives the batches. It does not begin anew unless DatasetOptions.Epochs
// is set.
func (s *Dataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for list, err := range s.all() {
			var b train.Batch
			if err == nil {
				b.Inputs, b.Labels = firsts(list[:s.inputs]), firsts(list[s.inputs:])
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// firsts gives the only shards.
func firsts(list []*dtensor.Tensor) []*tensors.Tensor {
	shards := make([]*tensors.Tensor, len(list))
	for i, t := range list {
		shards[i] = t.Shards()[0]
	}
	return shards
}

// Iter gives an error: a trainer that calls it would compute on one device.
func (s *DistributedDataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		yield(train.Batch{}, unsupported("dataset %q is for %d devices, but was asked for batches on one", s.name, len(s.plan.assignment)).
			WithHint("train with Loop.RunSteps, which is distributed; Loop.RunEpochs is not"))
	}
}

// DistributedIter gives the batches. It does not begin anew unless
// DatasetOptions.Epochs is set.
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

// Strategy is distributed.AutoSharding.
func (s *DistributedDataset) Strategy() distributed.Strategy { return distributed.AutoSharding }

// DeviceAssignment gives the devices in mesh order.
func (s *DistributedDataset) DeviceAssignment() []compute.DeviceNum {
	return append([]compute.DeviceNum(nil), s.plan.assignment...)
}

// feed is what both datasets are made of.
type feed struct {
	l      *loader.Loader
	d      *Devices
	plan   *plan
	name   string
	arrays []int // to be handed over: the inputs, then the labels
	inputs int
	epochs int64
	ctx    context.Context
}

func newFeed(l *loader.Loader, d *Devices, o DatasetOptions) (*feed, error) {
	p, err := newPlacer(l, d)
	if err != nil {
		return nil, err
	}
	defer p.close()
	f := &feed{l: l, d: d, plan: p.ring.plan, name: o.Name, inputs: len(o.Inputs), epochs: int64(o.Epochs), ctx: o.Context}
	if f.ctx == nil {
		f.ctx = context.Background()
	}
	if f.name == "" {
		f.name = "meshfeed"
	}
	if o.Epochs < 0 {
		return nil, fail("a dataset has at least 0 epochs, not %d", o.Epochs).WithHint("0 is without end")
	}
	if len(o.Inputs) == 0 {
		return nil, fail("a trainer needs at least one input").WithHint("name some of %q in DatasetOptions.Inputs", f.plan.names())
	}
	return f, f.choose(append(append([]string{}, o.Inputs...), o.Labels...))
}

// choose finds the arrays by their names.
func (f *feed) choose(names []string) error {
	seen := map[int]bool{}
	for _, name := range names {
		i, ok := f.plan.find(name)
		if !ok {
			return noArray(f.plan, name)
		}
		if seen[i] {
			return fail("array %q is named twice, but a trainer frees each tensor that it gets", name).
				WithHint("let the model return what the loss needs of it, or deliver the field as two arrays")
		}
		seen[i] = true
		f.arrays = append(f.arrays, i)
	}
	return nil
}

// Name gives DatasetOptions.Name.
func (f *feed) Name() string { return f.name }

// ShortName gives the first three letters of the name, or as many as it has.
func (f *feed) ShortName() string {
	letters := []rune(f.name)
	return string(letters[:min(3, len(letters))])
}

// all gives the chosen arrays of one batch after another. Their receiver owns
// them.
func (f *feed) all() iter.Seq2[[]*dtensor.Tensor, error] {
	return func(yield func([]*dtensor.Tensor, error) bool) {
		p, err := newPlacer(f.l, f.d)
		if err != nil {
			yield(nil, err)
			return
		}
		defer p.close()
		if err := f.begin(); err != nil {
			yield(nil, err)
			return
		}
		for f.loop(p, yield) {
		}
	}
}

// begin goes to the start, where every iterator has epochs of its own.
func (f *feed) begin() error {
	if f.epochs == 0 {
		return nil
	}
	return f.l.Seek(batch.Cursor{})
}

// loop is one loop of the loader. It says whether another follows, which is not
// so after a loop without a batch: the loader has come to the end of its epochs.
func (f *feed) loop(p *placer, yield func([]*dtensor.Tensor, error) bool) (more bool) {
	for b, err := range p.all(f.ctx) {
		if err != nil {
			yield(nil, err)
			return false
		}
		list, err := b.take(f.arrays)
		if !yield(list, err) || err != nil || f.ends(b) {
			return false
		}
		more = true
	}
	return more
}

// ends says whether a batch is the last one of an iterator.
func (f *feed) ends(b *Batch) bool { return f.epochs > 0 && b.Place().After.Epoch >= f.epochs }
