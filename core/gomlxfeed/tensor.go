package gomlxfeed

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
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

// counterparts maps our element types to GoMLX's. Every backend can place and read
// back all of them, even if its graphs cannot compute with some.
var counterparts = map[dtype.Type]dtypes.DType{
	dtype.Bool: dtypes.Bool,
	dtype.Int8: dtypes.Int8, dtype.Int16: dtypes.Int16, dtype.Int32: dtypes.Int32, dtype.Int64: dtypes.Int64,
	dtype.Uint8: dtypes.Uint8, dtype.Uint16: dtypes.Uint16, dtype.Uint32: dtypes.Uint32, dtype.Uint64: dtypes.Uint64,
	dtype.Float16: dtypes.Float16, dtype.BFloat16: dtypes.BFloat16, dtype.Float32: dtypes.Float32, dtype.Float64: dtypes.Float64,
	dtype.Complex64: dtypes.Complex64, dtype.Complex128: dtypes.Complex128,
}

// gomlxType converts an element type.
func gomlxType(t dtype.Type) (dtypes.DType, error) {
	if g, known := counterparts[t]; known {
		return g, nil
	}
	return dtypes.InvalidDType, fail("GoMLX has no element type %s", t)
}

func placeable() []dtype.Type {
	var list []dtype.Type
	for _, t := range dtype.All() {
		if _, known := counterparts[t]; known {
			list = append(list, t)
		}
	}
	return list
}

// put copies an array, in C order, to a new tensor on a device.
func (d *Devices) put(dev int, t dtype.Type, dims []int, data []byte) (*tensors.Tensor, error) {
	doing := fmt.Sprintf("place on device %d", dev)
	shape, size, err := d.check(doing, dev, t, dims)
	if err != nil {
		return nil, err
	}
	if len(data) != size {
		return nil, fail("cannot %s: %s has %d bytes, but %d were given", doing, arrayText(t, dims), size, len(data))
	}
	if !d.Shared() {
		data = aligned(data, t.Size())
	}
	var placed *tensors.Tensor
	err = d.call(doing, func() (err error) {
		if placed, err = tensors.FromRaw(d.backend, compute.DeviceNum(dev), shape, data); err == nil {
			d.own(placed, size)
		}
		return err
	})
	return placed, err
}

// empty returns a new tensor on a device and its memory. Writing to the memory
// changes the tensor. The memory is valid until the tensor is freed. The devices
// must be Shared.
func (d *Devices) empty(dev int, t dtype.Type, dims []int) (*tensors.Tensor, []byte, error) {
	doing := fmt.Sprintf("allocate on device %d", dev)
	shape, size, err := d.check(doing, dev, t, dims)
	if err != nil {
		return nil, nil, err
	}
	if !d.Shared() {
		return nil, nil, status.Errorf(status.Unsupported, "gomlxfeed", "cannot %s: the memory of %s is not shared", doing, d.Name())
	}
	var made *tensors.Tensor
	var memory []byte
	err = d.call(doing, func() (err error) {
		if made, err = tensors.FromShapeForBackend(d.backend, compute.DeviceNum(dev), shape); err != nil {
			return err
		}
		d.own(made, size)
		return made.MutableBytes(func(b []byte) { memory = b })
	})
	if err == nil && len(memory) != size {
		err = status.Errorf(status.Internal, "gomlxfeed", "cannot %s: the buffer of %s has %d bytes", doing, arrayText(t, dims), len(memory))
	}
	if err != nil {
		_ = d.free(made) // does nothing if the tensor was not created
		return nil, nil, err
	}
	return made, memory, nil
}

// read copies the value of a tensor to dst, which must have the same length.
func (d *Devices) read(t *tensors.Tensor, dst []byte) error {
	size, err := d.sizeOf("read", t)
	if err != nil {
		return err
	}
	if len(dst) != size {
		return fail("cannot read a tensor of %d bytes into %d", size, len(dst))
	}
	return d.call("read a tensor", func() error {
		return t.ConstBytes(func(b []byte) { copy(dst, b) })
	})
}

// free frees the memory of a tensor at once. It is also allowed after Close. If the
// backend is broken, free only deletes the record of the tensor.
func (d *Devices) free(t *tensors.Tensor) error {
	if err := d.claim("free", t); err != nil {
		return err
	}
	d.mu.Lock()
	broken := d.broken != nil
	d.mu.Unlock()
	var err error
	if !broken {
		err = d.reword("free a tensor", guard.Call("gomlxfeed", t.FinalizeAll))
	}
	return cmp.Or(err, d.forget(t))
}

// disown hands a tensor over to the caller, which frees it. Live no longer counts
// it.
func (d *Devices) disown(t *tensors.Tensor) error {
	if err := d.claim("hand over", t); err != nil {
		return err
	}
	return d.forget(t)
}

// check validates the device, type and shape of an array before GoMLX sees them.
func (d *Devices) check(doing string, dev int, t dtype.Type, dims []int) (shapes.Shape, int, error) {
	if dev < 0 || dev >= d.Num() {
		return shapes.Shape{}, 0, status.Errorf(status.OutOfRange, "gomlxfeed", "cannot %s: %s has %s", doing, d.Name(), numbered(d.Num()))
	}
	g, err := gomlxType(t)
	if err != nil {
		return shapes.Shape{}, 0, err
	}
	size := t.Size()
	for _, n := range dims {
		high, low := bits.Mul64(uint64(size), uint64(n))
		if n < 0 || high > 0 || low > math.MaxInt {
			return shapes.Shape{}, 0, fail("cannot %s: %s does not fit into memory", doing, arrayText(t, dims))
		}
		size = int(low)
	}
	return shapes.Make(g, dims...), size, nil
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
	parts := make([]string, len(dims))
	for i, n := range dims {
		parts[i] = fmt.Sprint(n)
	}
	return t.String() + "[" + strings.Join(parts, ",") + "]"
}

func numbered(n int) string {
	if n == 1 {
		return "device 0 only"
	}
	return fmt.Sprintf("devices 0 to %d", n-1)
}
