package cstream

import (
	"github.com/meshfeed/meshfeed/core/dtype"
)

// column is where the rows of an array stand.
type column struct {
	base    uintptr
	stride  int   // bytes from row to row
	strides []int // bytes from element to element, per dimension of the row
}

func (a *Array) column() column {
	strides := a.Strides
	if strides == nil {
		strides = denseStrides(a.Shape, a.Type)
	}
	return column{uintptr(a.Data), strides[0], append([]int(nil), strides[1:]...)}
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
