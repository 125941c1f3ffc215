package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"slices"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// ringObject is the object of an mf_ring handle: memory on devices for the batches
// of a layout.
type ringObject struct {
	ready
	*gomlxfeed.Ring
	blocks []layout.Block // blocks of a batch
	arrays []ringArray    // in the order of the layout
}

func (*ringObject) String() string          { return "a ring" }
func (*ringObject) Patience() time.Duration { return patience }

// ringInfo is the result of mf_ring_info.
type ringInfo struct {
	Arrays []ringArray `json:"arrays"`
}

type ringArray struct {
	array
	ShardShape []int       `json:"shard_shape"`
	Shards     []ringShard `json:"shards"`
}

type ringShard struct {
	Position int            `json:"position"`
	Device   int            `json:"device"`
	Index    sharding.Index `json:"index"`
}

func newRing(d *gomlxfeed.Devices, l *layout.Layout) (*ringObject, error) {
	ring, err := d.Ring(l)
	if err != nil {
		return nil, err
	}
	r := &ringObject{Ring: ring, blocks: l.Process(l.Mesh().Processes()[0]).Blocks, arrays: []ringArray{}}
	for _, a := range l.Arrays() {
		r.arrays = append(r.arrays, ringArray{arrayOf(a), []int{}, []ringShard{}})
	}
	for _, b := range r.blocks {
		a := &r.arrays[b.Array]
		a.ShardShape = append([]int{}, b.Index.Shape()...)
		for _, position := range b.Holders {
			a.Shards = append(a.Shards, ringShard{position, l.Mesh().Device(position).ID, b.Index})
		}
	}
	for _, a := range r.arrays {
		slices.SortFunc(a.Shards, func(x, y ringShard) int { return x.Position - y.Position })
	}
	return r, nil
}

// find returns an array by its number in the layout. It refuses arrays that are
// not in batches, and so have no shards.
func (r *ringObject) find(array C.int32_t) (*ringArray, error) {
	if array < 0 || int(array) >= len(r.arrays) {
		return nil, status.Errorf(status.OutOfRange, "devices", "there is no array %d among the %d of the layout", int(array), len(r.arrays))
	}
	a := &r.arrays[array]
	if len(a.Shards) == 0 {
		return nil, status.Errorf(status.OutOfRange, "devices", "array %q is not part of batches", a.Name)
	}
	return a, nil
}

// transfer copies a batch to the devices.
func (r *ringObject) transfer(ctx context.Context, b *C.mfi_batch) (*deviceBatch, error) {
	blocks, err := r.match(b)
	if err != nil {
		return nil, err
	}
	step := batch.Step{
		Cursor: cursor(b.epoch, b.position),
		Index:  int64(b.step), Valid: int64(b.rows),
		After: cursor(b.next_epoch, b.next_position),
	}
	out, err := r.Place(ctx, step, func(i int) []byte { return blocks[i] })
	if err != nil {
		return nil, err
	}
	return &deviceBatch{Batch: out, ring: r}, nil
}

// match returns the bytes of the blocks of a batch. It refuses a batch of
// another layout.
func (r *ringObject) match(b *C.mfi_batch) ([][]byte, error) {
	if int(b.tensors) != len(r.blocks) {
		return nil, misfit("the batch has %d blocks, and the ring is for %d", int(b.tensors), len(r.blocks))
	}
	blocks := make([][]byte, len(r.blocks))
	for i, want := range r.blocks {
		var t C.mf_tensor
		if !bool(C.mfi_batch_block(b, C.int32_t(i), &t)) || !r.same(&t, want) {
			return nil, misfit("block %d of the batch is not the part of array %q that the ring has there", i, r.arrays[want.Array].Name)
		}
		blocks[i] = unsafe.Slice((*byte)(t.data), int(t.bytes))
	}
	return blocks, nil
}

func misfit(format string, args ...any) error {
	return status.Errorf(status.InvalidArgument, "devices", format, args...).
		WithHint("make the ring with the layout of the batch's loader")
}

// same reports whether a block of a batch is the given block of the layout. Shape,
// start, global shape and holders are one list in C memory, to which t.shape points.
func (r *ringObject) same(t *C.mf_tensor, want layout.Block) bool {
	a := &r.arrays[want.Array]
	dims, _ := blockDims(a.Shape, want)
	n := 3*int(t.ndim) + int(t.n_holders)
	return int(t.array) == want.Array && t.dtype == dlpack(a.Type) && int(t.ndim) == len(want.Index) &&
		slices.Equal(unsafe.Slice((*int64)(t.shape), n), dims)
}

//export mfgo_ring_create
func mfgo_ring_create(dh, lh C.uint64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withMade(dh, e, func(_ context.Context, _ *devicesObject, d *gomlxfeed.Devices) error {
		return use(lh, func(_ context.Context, l *layoutObject) error {
			r, err := newRing(d, l.Layout)
			if err == nil {
				put(r, out)
			}
			return err
		})
	})
}

//export mfgo_ring_info
func mfgo_ring_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, r *ringObject) error { return writeJSON(out, ringInfo{r.arrays}) })
}

//export mfgo_ring_transfer
func mfgo_ring_transfer(h C.uint64_t, b *C.mfi_batch, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, r *ringObject) error {
		moved, err := r.transfer(ctx, b)
		if err == nil {
			put(moved, out)
		}
		return err
	})
}
