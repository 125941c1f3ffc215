package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"slices"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// ringObject is what an mf_ring names: memory on devices for the batches of a
// layout.
type ringObject struct {
	*gomlxfeed.Ring
	devices *gomlxfeed.Devices
	blocks  []layout.Block
	arrays  []ringArray // by number
}

func (*ringObject) String() string             { return "a ring" }
func (*ringObject) Patience() time.Duration    { return patience }
func (*ringObject) wait(context.Context) error { return nil }

// ringInfo is the answer of mf_ring_info.
type ringInfo struct {
	Arrays []ringArray `json:"arrays"`
}

type ringArray struct {
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	Type       dtype.Type  `json:"dtype"`
	Shape      []int       `json:"shape"`
	Spec       []any       `json:"spec"`
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
	r := &ringObject{Ring: ring, devices: d, blocks: l.Process(l.Mesh().Processes()[0]).Blocks, arrays: []ringArray{}}
	for _, a := range l.Arrays() {
		r.arrays = append(r.arrays, ringArray{
			Name: a.Name, Kind: kindNames[a.Kind], Type: a.Type, Shape: append([]int{}, a.Shape...),
			Spec: entries(a.Delivered.Spec()), ShardShape: []int{}, Shards: []ringShard{},
		})
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

// find gives an array by its number, after checking that it has shards.
func (r *ringObject) find(array C.int32_t) (*ringArray, error) {
	if array < 0 || int(array) >= len(r.arrays) {
		return nil, status.Errorf(status.OutOfRange, "devices", "there is no array %d among the %d of the layout", int(array), len(r.arrays))
	}
	a := &r.arrays[array]
	if len(a.Shards) == 0 {
		return nil, status.Errorf(status.OutOfRange, "devices", "array %q is no part of batches", a.Name)
	}
	return a, nil
}

// place copies a batch to the devices.
func (r *ringObject) place(ctx context.Context, b *C.mfi_batch) (*placedObject, error) {
	blocks, err := r.match(b)
	if err != nil {
		return nil, err
	}
	at := batch.Step{
		Cursor: batch.Cursor{Epoch: int64(b.epoch), Position: int64(b.position)},
		Index:  int64(b.step), Valid: int64(b.rows),
		After: batch.Cursor{Epoch: int64(b.next_epoch), Position: int64(b.next_position)},
	}
	placed, err := r.Place(ctx, at, func(i int) []byte { return blocks[i] })
	if err != nil {
		return nil, err
	}
	return &placedObject{Batch: placed, ring: r}, nil
}

// match gives the bytes of the blocks of a batch, which must be those of the
// ring's layout: a batch of another would be taken for one of this.
func (r *ringObject) match(b *C.mfi_batch) ([][]byte, error) {
	if int(b.tensors) != len(r.blocks) {
		return nil, misfit("the batch has %d blocks, and the ring is for %d", int(b.tensors), len(r.blocks))
	}
	list := make([][]byte, len(r.blocks))
	for i, want := range r.blocks {
		var t C.mf_tensor
		if !bool(C.mfi_batch_block(b, C.int32_t(i), &t)) || !r.same(&t, want) {
			return nil, misfit("block %d of the batch is not the part of array %q that the ring has there", i, r.arrays[want.Array].Name)
		}
		list[i] = unsafe.Slice((*byte)(t.data), int(t.bytes))
	}
	return list, nil
}

func misfit(format string, args ...any) error {
	return status.Errorf(status.InvalidArgument, "devices", format, args...).
		WithHint("make the ring with the layout of the batch's loader")
}

// same says whether a block of a batch is the block of the layout.
func (r *ringObject) same(t *C.mf_tensor, want layout.Block) bool {
	a := &r.arrays[want.Array]
	code, bits := a.Type.DLPack()
	if int(t.array) != want.Array || t.dtype.code != C.uint8_t(code) || t.dtype.bits != C.uint8_t(bits) || int(t.ndim) != len(want.Index) {
		return false
	}
	shape, start := numbers(t.shape, len(want.Index)), numbers(t.start, len(want.Index))
	for d, pair := range want.Index {
		if int(start[d]) != pair[0] || int(start[d]+shape[d]) != pair[1] {
			return false
		}
	}
	return slices.EqualFunc(numbers(t.holders, int(t.n_holders)), want.Holders, func(x int64, y int) bool { return int(x) == y })
}

// numbers gives a list that lies in C memory.
func numbers(p *C.int64_t, n int) []int64 { return unsafe.Slice((*int64)(p), n) }

//export mfgo_ring_create
func mfgo_ring_create(dh, lh C.uint64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return useDevices(dh, func(_ context.Context, d *gomlxfeed.Devices) error {
			return use(lh, func(_ context.Context, l *layoutObject) error {
				r, err := newRing(d, l.Layout)
				if err == nil {
					put(r, out)
				}
				return err
			})
		})
	})
}

//export mfgo_ring_info
func mfgo_ring_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, r *ringObject) error {
			text, err := json.Marshal(ringInfo{r.arrays})
			if err != nil {
				return err
			}
			return give(out, text)
		})
	})
}

//export mfgo_batch_place
func mfgo_batch_place(b *C.mfi_batch, h C.uint64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(ctx context.Context, r *ringObject) error {
			placed, err := r.place(ctx, b)
			if err == nil {
				put(placed, out)
			}
			return err
		})
	})
}
