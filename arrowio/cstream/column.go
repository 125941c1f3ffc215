package cstream

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// column is where the rows of an array stand.
type column struct {
	base   uintptr
	stride int // bytes from row to row

	// Rows that are not in C order are packed before they are gathered.
	packed         bool
	shape, strides []int // of a row
	size           int   // bytes of an element
	bytes          int   // of a row in C order
}

func (a *Array) column() column {
	c := column{base: uintptr(a.Data), shape: append([]int(nil), a.Shape[1:]...), size: a.Type.Size()}
	dense := denseStrides(a.Shape, a.Type)
	c.bytes = dense[0]
	c.stride = dense[0]
	if a.Strides == nil {
		return c
	}
	c.stride = a.Strides[0]
	c.strides = append([]int(nil), a.Strides[1:]...)
	for d, n := range c.shape {
		c.packed = c.packed || n > 1 && c.strides[d] != dense[d+1]
	}
	return c
}

// denseStrides gives the byte strides of C order.
func denseStrides(shape []int, t dtype.Type) []int {
	strides := make([]int, len(shape))
	step := t.Size()
	for d := len(shape) - 1; d >= 0; d-- {
		strides[d] = step
		step *= shape[d]
	}
	return strides
}

// row gives the address of a record's row.
func (c *column) row(record int64) uintptr {
	return c.base + uintptr(int(record)*c.stride)
}

// pack copies a row to dst in C order.
func (c *column) pack(dst []byte, row uintptr) {
	p := packer{column: c, dst: dst}
	p.dimension(0, row)
}

type packer struct {
	*column
	dst []byte
}

func (p *packer) dimension(d int, at uintptr) {
	if d < len(p.shape)-1 {
		for range p.shape[d] {
			p.dimension(d+1, at)
			at += uintptr(p.strides[d])
		}
		return
	}
	// Innermost. The element sizes are 1, 2, 4, 8 and 16.
	for range p.shape[d] {
		copy(p.dst[:p.size], memory(at, p.size))
		p.dst = p.dst[p.size:]
		at += uintptr(p.strides[d])
	}
}

// memory gives the bytes at an address outside Go's own memory. The detour
// tells vet that the conversion is meant.
func memory(at uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}
