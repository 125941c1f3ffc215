package loader

import (
	"encoding/binary"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
)

// computed is a block that the loader computes from the record list alone: the
// mask, the keys or the record numbers.
type computed struct {
	block int
	kind  layout.Kind
	runs  [][2]int // runs of the record list, in the block's order
}

// padding is the record number of a padding row.
const padding = -1

// fill writes the block's bytes to dst.
func (c computed) fill(dst []byte, records []int64, draw source.Draw) {
	for _, run := range c.runs {
		for _, r := range records[run[0]:run[1]] {
			if c.kind == layout.Mask {
				dst[0] = 0
				if r != padding {
					dst[0] = 1
				}
				dst = dst[1:]
				continue
			}
			for _, w := range c.pair(r, draw) {
				binary.LittleEndian.PutUint32(dst, w)
				dst = dst[4:]
			}
		}
	}
}

// pair returns the two 32-bit words of a row of keys or record numbers. A layout
// never splits such a row. In a padding row all bits of a key are zero, and all bits
// of a record number are one; no record has that number.
func (c computed) pair(record int64, draw source.Draw) [2]uint32 {
	switch {
	case c.kind == layout.Record:
		return [2]uint32{uint32(record), uint32(record >> 32)}
	case record == padding:
		return [2]uint32{}
	}
	return sampler.RecordKey(draw.Seed, draw.Epoch, record)
}
