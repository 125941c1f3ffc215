package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

// watched returns a dataset that writes the SHA-256 of every global batch to out, a line
// per step. It reads the batch back from the devices before the trainer gets it. The batch
// is split by rows only, so its bytes are the bytes of the shards, one after another.
func watched(ds train.Dataset, out io.Writer) train.Dataset {
	if one, ok := ds.(*gomlxfeed.Dataset); ok {
		return watchedOne{one, out}
	}
	return watchedMesh{ds.(*gomlxfeed.DistributedDataset), out}
}

type watchedOne struct {
	*gomlxfeed.Dataset
	out io.Writer
}

func (w watchedOne) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for b, err := range w.Dataset.Iter() {
			if err == nil {
				err = note(w.out, slices.Concat(b.Inputs, b.Labels))
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

type watchedMesh struct {
	*gomlxfeed.DistributedDataset
	out io.Writer
}

func (w watchedMesh) DistributedIter() iter.Seq2[train.DistributedBatch, error] {
	return func(yield func(train.DistributedBatch, error) bool) {
		for b, err := range w.DistributedDataset.DistributedIter() {
			if err == nil {
				err = note(w.out, slices.Concat(shards(b.Inputs), shards(b.Labels)))
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// shards lists the shards of the arrays, array by array, in mesh order.
func shards(arrays []*dtensor.Tensor) (all []*tensors.Tensor) {
	for _, array := range arrays {
		all = append(all, array.Shards()...)
	}
	return all
}

// note writes the digest of the bytes that the devices hold.
func note(out io.Writer, list []*tensors.Tensor) error {
	h := sha256.New()
	for _, t := range list {
		if err := t.ConstBytes(func(bytes []byte) { h.Write(bytes) }); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%x\n", h.Sum(nil))
	return err
}
