package main

import (
	"context"
	"errors"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// evaluate returns the share of test images that the network recognizes. The
// last batch is padded with zeros, and the mask marks the real rows.
func evaluate(ctx context.Context, net *model.Store, tests source.Source, d *gomlxfeed.Devices) (float64, error) {
	lay, err := layoutOver(d, layout.Pad)
	if err != nil {
		return 0, err
	}
	ring, err := d.Ring(lay)
	if err != nil {
		return 0, err
	}
	defer ring.Close()
	l, err := loader.New(tests, loader.Options{Layout: lay, Allocator: ring})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	counter, err := counterOf(net, lay, d)
	if err != nil {
		return 0, err
	}
	var right, seen int32
	for b, err := range gomlxfeed.Placed(ctx, l, d) {
		if err != nil {
			return 0, err
		}
		hits, real, err := scores(counter, b)
		b.Release()
		if err != nil {
			return 0, err
		}
		right, seen = right+hits, seen+real
	}
	counter.Finalize() // not deferred: if the graph could not be built, GoMLX's Finalize never returns
	if int64(seen) != tests.Len() {
		return 0, errors.New("the mask does not count every test image once")
	}
	return float64(right) / float64(seen), nil
}

// counterOf compiles countCorrect for batches of a layout.
func counterOf(net *model.Store, lay *layout.Layout, d *gomlxfeed.Devices) (*model.Exec, error) {
	counter, err := model.NewExec(d.Backend(), net, countCorrect)
	if err != nil || d.Num() == 1 {
		return counter, err
	}
	logical, assignment, err := gomlxfeed.Mesh(lay.Mesh(), d)
	if err != nil {
		return nil, err
	}
	images, err1 := gomlxfeed.ShardingSpec(logical, sharding.P("data"), 3)
	labels, err2 := gomlxfeed.ShardingSpec(logical, sharding.P("data"), 1)
	whole, err3 := gomlxfeed.ShardingSpec(logical, sharding.P(), 0)
	counter.AutoSharding(logical).WithDeviceAssignment(assignment)
	counter.WithInputShardingSpecs(images, labels, labels).WithOutputShardingSpecs(whole, whole)
	return counter, errors.Join(err1, err2, err3)
}

// scores runs countCorrect on one batch.
func scores(counter *model.Exec, b *gomlxfeed.Batch) (hits, real int32, err error) {
	counts, err := counter.Call(b.Tensor("image"), b.Tensor("label"), b.Tensor("valid"))
	if err != nil {
		return 0, 0, err
	}
	// The first two results come from the first device; all devices have the same.
	hits, real = tensors.ToScalar[int32](counts[0]), tensors.ToScalar[int32](counts[1])
	for _, c := range counts {
		err = errors.Join(err, c.FinalizeAll())
	}
	return hits, real, err
}
