package gomlxfeed

import (
	"cmp"
	"fmt"
	"strings"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// shapeOf converts a type and a shape. GoMLX has all our element types under the
// same names, and every backend can place them, even if its graphs cannot compute
// with some.
func shapeOf(t dtype.Type, dims []int) shapes.Shape {
	return shapes.Make(dtypes.MapOfNames[t.String()], dims...)
}

// put copies data, in C order, to a new tensor on a device.
func (d *Devices) put(dev compute.DeviceNum, shape shapes.Shape, data []byte) (placed *tensors.Tensor, err error) {
	if !d.Shared() {
		data = aligned(data, shape.DType.Size())
	}
	err = d.call(fmt.Sprintf("place on device %d", dev), func() (err error) {
		if placed, err = tensors.FromRaw(d.backend, dev, shape, data); err == nil {
			d.count(1, len(data))
		}
		return err
	})
	return placed, err
}

// empty returns a new tensor on a device and its memory. Writing to the memory
// changes the tensor. The memory is valid until the tensor is freed. The devices
// must be Shared.
func (d *Devices) empty(dev compute.DeviceNum, shape shapes.Shape) (tensor *tensors.Tensor, memory []byte, err error) {
	doing, size := fmt.Sprintf("allocate on device %d", dev), int(shape.ByteSize())
	err = d.call(doing, func() (err error) {
		if tensor, err = tensors.FromShapeForBackend(d.backend, dev, shape); err != nil {
			return err
		}
		d.count(1, size)
		return tensor.MutableBytes(func(b []byte) { memory = b })
	})
	if err == nil && len(memory) != size {
		err = status.Errorf(status.Internal, "gomlxfeed", "cannot %s: the buffer of %s has %d bytes", doing, shape, len(memory))
	}
	if err != nil && tensor != nil {
		_ = d.free(tensor, size) // err, which came first, is returned
	}
	return tensor, memory, err
}

// read copies the value of a tensor to dst, which has the same length.
func (d *Devices) read(t *tensors.Tensor, dst []byte) error {
	return d.call("read a tensor", func() error {
		return t.ConstBytes(func(b []byte) { copy(dst, b) })
	})
}

// free frees the memory of a tensor at once. It is also allowed after Close. If the
// backend is broken, free does not call it, and only subtracts the tensor from Live.
func (d *Devices) free(t *tensors.Tensor, bytes int) error {
	d.mu.Lock()
	broken := d.broken != nil
	d.mu.Unlock()
	var err error
	if !broken {
		err = d.reword("free a tensor", guard.Call("gomlxfeed", t.FinalizeAll))
	}
	return cmp.Or(err, d.forget(bytes))
}

// aligned returns data if its address is aligned for elements of this size, and
// an aligned copy otherwise.
func aligned(data []byte, size int) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(min(size, 8)) == 0 {
		return data
	}
	words := make([]uint64, (len(data)+7)/8)
	moved := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(data))
	copy(moved, data)
	return moved
}

// arrayText formats an array's type and shape as JAX does, such as "float32[2,3]".
func arrayText(t dtype.Type, dims []int) string {
	return t.String() + strings.ReplaceAll(fmt.Sprint(dims), " ", ",")
}

// numbered names n devices by their numbers.
func numbered(n int) string {
	if n == 1 {
		return "device 0 only"
	}
	return fmt.Sprintf("devices 0 to %d", n-1)
}
