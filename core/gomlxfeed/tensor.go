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

// counterparts gives GoMLX's name of each of our types. All of them can be
// placed and read back on every backend, whatever its graphs can compute with.
var counterparts = map[dtype.Type]dtypes.DType{
	dtype.Bool: dtypes.Bool,
	dtype.Int8: dtypes.Int8, dtype.Int16: dtypes.Int16, dtype.Int32: dtypes.Int32, dtype.Int64: dtypes.Int64,
	dtype.Uint8: dtypes.Uint8, dtype.Uint16: dtypes.Uint16, dtype.Uint32: dtypes.Uint32, dtype.Uint64: dtypes.Uint64,
	dtype.Float16: dtypes.Float16, dtype.BFloat16: dtypes.BFloat16, dtype.Float32: dtypes.Float32, dtype.Float64: dtypes.Float64,
	dtype.Complex64: dtypes.Complex64, dtype.Complex128: dtypes.Complex128,
}

// gomlxType gives GoMLX's name of a type.
func gomlxType(t dtype.Type) (dtypes.DType, error) {
	if g, known := counterparts[t]; known {
		return g, nil
	}
	return dtypes.InvalidDType, fail("%s is not an element type that GoMLX has", t)
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

// put copies bytes, one array in C order, to a new tensor on a device.
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

// empty gives a new tensor on a device with the memory that is its value:
// what is written there is on the device. The memory is valid until the tensor
// is freed, and only on devices that are Shared.
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
		_ = d.free(made) // nothing to free if it was not made
		return nil, nil, err
	}
	return made, memory, nil
}

// read copies the value of a tensor to dst, which has its exact length.
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

// free gives the memory of a tensor back at once. It is the one call that is
// legal after Close. The tensors of a broken backend are only forgotten.
func (d *Devices) free(t *tensors.Tensor) error {
	if err := d.begin("free", t); err != nil {
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

// disown hands a tensor over: whoever has it frees it, and Live counts it no more.
func (d *Devices) disown(t *tensors.Tensor) error {
	if err := d.begin("hand over", t); err != nil {
		return err
	}
	return d.forget(t)
}

// check finds what is wrong with placing an array before GoMLX does.
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
			return shapes.Shape{}, 0, fail("cannot %s: %s is not a shape that fits memory", doing, arrayText(t, dims))
		}
		size = int(low)
	}
	return shapes.Make(g, dims...), size, nil
}

// aligned gives data itself if it may be read as elements of that size, and a
// copy at an aligned address otherwise.
func aligned(data []byte, size int) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(min(size, 8)) == 0 {
		return data
	}
	words := make([]uint64, (len(data)+7)/8)
	moved := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(data))
	copy(moved, data)
	return moved
}

// arrayText prints an array's type and shape as JAX does, such as "float32[2,3]".
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
