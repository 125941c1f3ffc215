package selfcheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// checks returns all checks in the order in which they run.
func (s *session) checks() []check {
	return []check{
		{"bytes of every type", s.types},
		{"meshes, specs and device orders", s.meshes},
		{"batches kept while later ones arrive", s.held},
		{"batches that a trainer owns", s.owned},
		{"memory returned", s.returned},
	}
}

// amount scales a number of batches or rows down for tests.
func (s *session) amount(n int) int {
	if s.o.Small {
		return max(1, n/20)
	}
	return n
}

func (s *session) types(ctx context.Context) (string, error) {
	types := s.d.Facts().DTypes
	rows := 4 * s.d.Num()
	var fields []field
	var specs []sharding.PartitionSpec
	for _, t := range types {
		fields = append(fields, newField(s.random, t.String(), t, 4*rows, 5, 3))
		specs = append(specs, sharding.P("data"))
	}
	w, err := newWorkload(s.oneAxis(), layout.BatchSpec{Size: []int{rows}}, fields, specs)
	if err != nil {
		return "", err
	}
	n, err := s.compareEpochs(ctx, w, 1, 0)
	return fmt.Sprintf("%d batches of %d types", n, len(types)), err
}

// compareEpochs compares all batches of some epochs and returns their number.
func (s *session) compareEpochs(ctx context.Context, w *workload, epochs, held int) (n int, err error) {
	f, err := s.open(w, loader.Options{Epochs: epochs, Prefetch: 2, Seed: s.random.Int64N(1000)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.all(ctx, s.d, held)
}

func (s *session) meshes(ctx context.Context) (string, error) {
	workloads, batches := s.amount(200), 0
	for range workloads {
		w, err := s.draw()
		if err != nil {
			return "", err
		}
		n, err := s.compareEpochs(ctx, w, 1, 0)
		if err != nil {
			return "", err
		}
		batches += n
	}
	return fmt.Sprintf("%d batches of %d random layouts", batches, workloads), nil
}

// wide builds a workload with rows of 4 KiB.
func (s *session) wide() (*workload, error) {
	rows := 8 * s.d.Num()
	fields := []field{newField(s.random, "wide", dtype.Float32, 8*rows, 1024), newField(s.random, "label", dtype.Int32, 8*rows)}
	return newWorkload(s.oneAxis(), layout.BatchSpec{Size: []int{rows}}, fields, []sharding.PartitionSpec{sharding.P("data"), sharding.P("data")})
}

func (s *session) held(ctx context.Context) (string, error) {
	w, err := s.wide()
	if err != nil {
		return "", err
	}
	n, err := s.compareEpochs(ctx, w, s.amount(100), 6)
	return fmt.Sprintf("%d batches, each compared after 6 later ones were placed", n), err
}

// owned takes batches as a trainer does. It frees one array at once and the other
// one after a comparison.
func (s *session) owned(ctx context.Context) (string, error) {
	if s.d.Num() < 2 {
		return "skipped: one device, so nothing is distributed", nil
	}
	w, err := s.wide()
	if err != nil {
		return "", err
	}
	f, err := s.open(w, loader.Options{Epochs: s.amount(20), Prefetch: 2})
	if err != nil {
		return "", err
	}
	n, err := s.compareTaken(ctx, f)
	return fmt.Sprintf("%d batches", n), errors.Join(err, f.close())
}

func (s *session) compareTaken(ctx context.Context, f *feed) (n int, err error) {
	o := gomlxfeed.DatasetOptions{Inputs: []string{"wide"}, Labels: []string{"label"}}
	ds, err := gomlxfeed.NewDistributedDataset(f.Loader, s.d, o)
	if err != nil {
		return 0, err
	}
	at := f.State().Cursor()
	for b, err := range ds.DistributedIter() {
		if err != nil {
			return n, err
		}
		records, err := f.Records(at)
		if err != nil {
			return n, err
		}
		at = f.State().Cursor()
		if err := b.Inputs[0].Finalize(); err != nil {
			return n, err
		}
		for i, shard := range b.Labels[0].Shards() {
			a := f.layout.Arrays()[1]
			want := f.fields["label"].shard(a.Delivered.IndexAt(a.Shape, i), records)
			same := false
			err := shard.ConstBytes(func(got []byte) { same = string(got) == string(want) })
			if err != nil || !same {
				return n, errors.Join(err, fmt.Errorf("%w: the label at mesh position %d of batch %d differs from the source", errMismatch, i, n))
			}
		}
		if err := b.Labels[0].Finalize(); err != nil {
			return n, err
		}
		n++
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
	}
	return n, nil
}

func (s *session) returned(context.Context) (string, error) {
	if buffers, bytes := s.d.Live(); buffers != 0 {
		return "", fmt.Errorf("%w: %d buffers of %d bytes are still live", errMismatch, buffers, bytes)
	}
	return "no live buffers", nil
}
