package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"runtime"
	"runtime/cgo"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

// deviceBatch is the object behind an mf_device_batch handle: a batch on devices.
type deviceBatch struct {
	ready
	*gomlxfeed.Batch
	ring *ringObject
}

func (*deviceBatch) String() string          { return "a device batch" }
func (*deviceBatch) Patience() time.Duration { return patience }

// Close returns the memory on the devices to the ring, except what is lent.
func (b *deviceBatch) Close() error {
	b.Release()
	return nil
}

//export mfgo_device_batch_read
func mfgo_device_batch_read(h C.uint64_t, array C.int32_t, position C.int64_t, to unsafe.Pointer, size C.int64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, b *deviceBatch) error {
		a, err := b.ring.find(array)
		if err != nil {
			return err
		}
		want := int64(a.Type.Size())
		for _, d := range a.ShardShape {
			want *= int64(d)
		}
		if int64(size) != want {
			return status.Errorf(status.InvalidArgument, "devices", "a shard of array %q has %d bytes, but size is %d", a.Name, want, int64(size))
		}
		return b.Read(a.Name, int(position), unsafe.Slice((*byte)(to), int(size)))
	})
}

// loan is memory of a device batch that a consumer of DLPack holds. No other
// batch uses it, and the garbage collector does not move it.
type loan struct {
	pin     runtime.Pinner
	release func()
}

// lend lends the memory of a shard until mfgo_loan_end.
func (b *deviceBatch) lend(a *ringArray, position int, out *C.mfi_loan) error {
	release, err := b.Hold()
	if err != nil {
		return err
	}
	memory, err := b.Bytes(a.Name, position)
	if err != nil {
		release()
		return err
	}
	l := &loan{release: release}
	data := unsafe.SliceData(memory)
	l.pin.Pin(data)
	_, shape := int64s(a.ShardShape)
	C.mfi_loan_set(out, unsafe.Pointer(data), C.uint64_t(cgo.NewHandle(l)), dlpack(a.Type), C.int32_t(len(a.ShardShape)), shape)
	return nil
}

//export mfgo_device_batch_lend
func mfgo_device_batch_lend(h C.uint64_t, array C.int32_t, position C.int64_t, out *C.mfi_loan, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, b *deviceBatch) error {
		a, err := b.ring.find(array)
		if err != nil {
			return err
		}
		return b.lend(a, int(position), out)
	})
}

//export mfgo_loan_end
func mfgo_loan_end(handle C.uint64_t) {
	call(nil, func() error {
		h := cgo.Handle(handle)
		l := h.Value().(*loan) // C has the handle from lend, and ends it once
		h.Delete()
		l.pin.Unpin()
		l.release()
		return nil
	})
}
