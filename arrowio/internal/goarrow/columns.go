package goarrow

import (
	"encoding/binary"
	"math"
	"strings"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Column is an array of a batch as Arrow stores it.
type Column struct {
	Name    string
	Type    dtype.Type // element type of Data: float32 for bfloat16, and floats for complex numbers
	Shape   []int      // shape of a row; each dimension is a fixed-size list
	Logical string     // as source.Field.Logical
	Data    []byte     // all rows; booleans are bits

	// Free ends the use of Data, if it is memory of the batch. It is nil for memory of
	// Go's heap.
	Free func()
}

// Rows returns the columns of a batch, and its number of rows. It takes the memory of
// the batch, which is freed when Free of every column was called. After an error the
// batch is unchanged.
func Rows(plan *layout.Layout, schema source.Schema, b *batch.Batch) ([]Column, int64, error) {
	if plan == nil || b == nil {
		return nil, 0, status.New(status.InvalidArgument, "arrowio", "a record batch needs a batch, and the layout of its loader")
	}
	if len(plan.BatchShape()) != 1 {
		return nil, 0, refuse("the batch has %d batch dimensions, but a record batch has one dimension of rows", len(plan.BatchShape()))
	}
	columns, rows, err := columnsOf(plan, schema, b)
	if err != nil {
		return nil, 0, err
	}
	m, err := b.Take()
	if err != nil {
		return nil, 0, err
	}
	shared := &sharing{memory: m}
	shared.users.Add(1)
	defer shared.free()
	for i := range columns {
		columns[i].convert(shared)
	}
	return columns, rows, nil
}

func refuse(format string, args ...any) *status.Error {
	return status.Errorf(status.Unsupported, "arrowio", format, args...)
}

// columnsOf describes the columns of a batch, in the memory of the batch. It leaves
// the mask out, because the result has no padding rows.
func columnsOf(plan *layout.Layout, schema source.Schema, b *batch.Batch) ([]Column, int64, error) {
	var columns []Column
	rows, arrays, next := b.Step().Valid, plan.Arrays(), 0
	for i, block := range b.Blocks() {
		if block.Array >= len(arrays) || arrays[block.Array].Type != block.Type || len(arrays[block.Array].Shape) != len(block.Shape) {
			return nil, 0, status.Errorf(status.InvalidArgument, "arrowio", "block %d of the batch is %v %v of array %d, which the layout does not have", i, block.Type, block.Shape, block.Array).
				WithHint("give the layout of the loader that delivered the batch")
		}
		a := arrays[block.Array]
		if a.Kind == layout.Mask {
			continue
		}
		if a.BatchDims == 0 || block.Array < next || block.Shape[0] != a.Shape[0] || size(block.Shape) != size(a.Shape) {
			return nil, 0, refuse("array %q has blocks of shape %v, but a record batch needs its %v in one block", a.Name, block.Shape, a.Shape).
				WithHint("load with a layout on a mesh of one device, and give every array the batch dimension")
		}
		next = block.Array + 1
		for _, n := range block.Shape[1:] {
			if n == 0 || n > math.MaxInt32 {
				return nil, 0, refuse("array %q has rows of shape %v, for which Arrow's library has no fixed-size list", a.Name, block.Shape[1:])
			}
		}
		_, field, _ := schema.Field(a.Field)
		c := Column{Name: a.Name, Type: block.Type, Shape: block.Shape[1:]}
		if field.Type == block.Type { // else it was narrowed
			c.Logical = field.Logical
		}
		data, err := b.Bytes(i)
		if err != nil {
			return nil, 0, err
		}
		if len(data) > 0 {
			c.Data = data[:int64(len(data))/int64(block.Shape[0])*rows]
		}
		columns = append(columns, c)
	}
	return columns, rows, nil
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// sharing frees the memory of a batch after its last user.
type sharing struct {
	users  atomic.Int64
	memory batch.Memory
}

func (s *sharing) free() {
	if s.users.Add(-1) == 0 {
		s.memory.Free()
	}
}

// convert changes the data to the form of Arrow. Most types already have it, and use
// the memory of the batch.
func (c *Column) convert(memory *sharing) {
	switch c.Type {
	case dtype.Bool:
		c.Data = packed(c.Data)
		return
	case dtype.BFloat16:
		c.Type, c.Data = dtype.Float32, widened(c.Data)
		return
	case dtype.Complex64:
		c.Type, c.Shape = dtype.Float32, append(c.Shape[:len(c.Shape):len(c.Shape)], 2)
	case dtype.Complex128:
		c.Type, c.Shape = dtype.Float64, append(c.Shape[:len(c.Shape):len(c.Shape)], 2)
	}
	memory.users.Add(1)
	c.Free = memory.free
}

// packed packs booleans, one byte each, into bits.
func packed(from []byte) []byte {
	bits := make([]byte, (len(from)+7)/8)
	for i, b := range from {
		if b != 0 {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}

// widened converts bfloat16 to float32, which has 16 more bits in the fraction.
func widened(from []byte) []byte {
	to := make([]byte, 2*len(from))
	for i := 0; i < len(from); i += 2 {
		binary.LittleEndian.PutUint32(to[2*i:], uint32(binary.LittleEndian.Uint16(from[i:]))<<16)
	}
	return to
}

// Temporal splits a logical type, such as "timestamp[us, tz=UTC]", into its kind, its unit
// and its time zone. Kind is "" for a plain number.
func Temporal(logical string) (kind, unit, zone string) {
	kind, rest, ok := strings.Cut(strings.TrimSuffix(logical, "]"), "[")
	if !ok {
		return logical, "", ""
	}
	unit, zone, _ = strings.Cut(rest, ", tz=")
	return kind, unit, zone
}
