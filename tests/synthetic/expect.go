package synthetic

import (
	"encoding/binary"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// Batch describes a global batch: its records row by row, with -1 for padding,
// and the inputs of keys and of drawn fields.
type Batch struct {
	Records     []int64
	Seed, Epoch int64
}

// Expect computes the bytes of a part of an array, element by element from the
// formula. It is slow and shares no code with the loader.
func Expect(a layout.Array, index sharding.Index, b Batch) []byte {
	size := a.Type.Size()
	a.Field = In(source.Draw{Seed: b.Seed, Epoch: b.Epoch}, source.Field{Name: a.Field}).Name
	bytes := size
	for _, interval := range index {
		bytes *= max(0, interval[1]-interval[0])
	}
	out, n := make([]byte, bytes), 0
	visit(index, func(at []int) {
		row := flat(at[:a.BatchDims], a.Shape[:a.BatchDims])
		put(out[n:n+size], &a, b, b.Records[row], at[a.BatchDims:])
		n += size
	})
	return out
}

// put writes one element of a row.
func put(dst []byte, a *layout.Array, b Batch, record int64, at []int) {
	switch a.Kind {
	case layout.Mask:
		if record >= 0 {
			dst[0] = 1
		}
	case layout.Record:
		binary.LittleEndian.PutUint32(dst, uint32(uint64(record)>>(32*at[0])))
	case layout.Key:
		if record >= 0 {
			binary.LittleEndian.PutUint32(dst, sampler.RecordKey(b.Seed, b.Epoch, record)[at[0]])
		}
	default:
		if record >= 0 {
			Put(dst, a.Type, Value(a.Field, record, element(a, at)))
		}
	}
}

// element returns the flat index in the field's row. With columns the array's
// first dimension differs from the field's, but the later ones are equal.
func element(a *layout.Array, at []int) int {
	shape := a.Shape[a.BatchDims:]
	if a.Columns == nil {
		return flat(at, shape)
	}
	rest := 1
	for _, n := range shape[1:] {
		rest *= n
	}
	return column(a.Columns, at[0])*rest + flat(at[1:], shape[1:])
}

// column returns the field's column of the i-th chosen column.
func column(columns [][2]int, i int) int {
	for _, c := range columns {
		for k := c[0]; k < c[1]; k++ {
			if i == 0 {
				return k
			}
			i--
		}
	}
	panic("synthetic: there is no such column")
}

func flat(at, shape []int) int {
	n := 0
	for d, i := range at {
		n = n*shape[d] + i
	}
	return n
}

// visit calls f for every coordinate of the part, in C order.
func visit(index sharding.Index, f func(at []int)) {
	at := make([]int, len(index))
	var dimension func(d int)
	dimension = func(d int) {
		if d == len(index) {
			f(at)
			return
		}
		for at[d] = index[d][0]; at[d] < index[d][1]; at[d]++ {
			dimension(d + 1)
		}
	}
	dimension(0)
}
