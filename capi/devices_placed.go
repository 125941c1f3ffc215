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

// placedObject is what an mf_placed names: a batch on devices.
type placedObject struct {
	*gomlxfeed.Batch
	ring *ringObject
}

func (*placedObject) String() string             { return "a placed batch" }
func (*placedObject) Patience() time.Duration    { return patience }
func (*placedObject) wait(context.Context) error { return nil }

// Close gives the memory on the devices back to the ring, but for what was lent.
func (p *placedObject) Close() error {
	p.Release()
	return nil
}

//export mfgo_placed_read
func mfgo_placed_read(h C.uint64_t, array C.int32_t, position C.int64_t, to unsafe.Pointer, size C.int64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, p *placedObject) error {
			a, err := p.ring.find(array)
			if err != nil {
				return err
			}
			if want := a.shardBytes(); int64(size) != want {
				return status.Errorf(status.InvalidArgument, "devices", "a shard of array %q has %d bytes, but there is room for %d", a.Name, want, int64(size))
			}
			return p.Read(a.Name, int(position), unsafe.Slice((*byte)(to), int(size)))
		})
	})
}

func (a *ringArray) shardBytes() int64 {
	n := int64(a.Type.Size())
	for _, d := range a.ShardShape {
		n *= int64(d)
	}
	return n
}

// loan is memory of a placed batch in foreign hands: it serves no other batch,
// and the collector leaves it where it is.
type loan struct {
	pin     runtime.Pinner
	release func()
}

func (l *loan) end() {
	l.pin.Unpin()
	l.release()
}

// lend gives the memory of a shard away until the loan with that number ends.
func (p *placedObject) lend(a *ringArray, position int, out *C.mfi_loan) error {
	release, err := p.Hold()
	if err != nil {
		return err
	}
	memory, err := p.Bytes(a.Name, position)
	if err != nil {
		release()
		return err
	}
	l := &loan{release: release}
	data := unsafe.SliceData(memory)
	l.pin.Pin(data)
	code, bits := a.Type.DLPack()
	dims := int64s(a.ShardShape)
	C.mfi_loan_set(out, unsafe.Pointer(data), C.uint64_t(cgo.NewHandle(l)),
		C.mf_dtype{code: C.uint8_t(code), bits: C.uint8_t(bits), lanes: 1}, C.int32_t(len(a.ShardShape)), (*C.int64_t)(unsafe.SliceData(dims)))
	return nil
}

//export mfgo_placed_lend
func mfgo_placed_lend(h C.uint64_t, array C.int32_t, position C.int64_t, out *C.mfi_loan, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, p *placedObject) error {
			a, err := p.ring.find(array)
			if err != nil {
				return err
			}
			return p.lend(a, int(position), out)
		})
	})
}

//export mfgo_placed_end
func mfgo_placed_end(number C.uint64_t) {
	call(nil, func() error {
		h := cgo.Handle(number)
		l := h.Value().(*loan) // C has the number from lend, and gives it back once
		h.Delete()
		l.end()
		return nil
	})
}
