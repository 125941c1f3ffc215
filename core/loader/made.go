package loader

import (
	"encoding/binary"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// made is a block that the loader fills from the record list alone: the mask,
// the keys, the record numbers.
type made struct {
	block int
	kind  layout.Kind
	runs  [][2]int // of the record list, in the block's order
}

// padding is the record of a row that is none.
const padding = -1

// fill writes the block.
func (m made) fill(dst []byte, records []int64, seed, epoch int64) {
	for _, run := range m.runs {
		for _, r := range records[run[0]:run[1]] {
			if m.kind == layout.Mask {
				dst[0] = 0
				if r != padding {
					dst[0] = 1
				}
				dst = dst[1:]
				continue
			}
			for _, w := range m.pair(r, seed, epoch) {
				binary.LittleEndian.PutUint32(dst, w)
				dst = dst[4:]
			}
		}
	}
}

// pair gives the two words of a row; no spec splits them. A padding row has key
// zero and a record number of all ones, which no record has.
func (m made) pair(record, seed, epoch int64) [2]uint32 {
	switch {
	case m.kind == layout.Record:
		return [2]uint32{uint32(record), uint32(record >> 32)}
	case record == padding:
		return [2]uint32{}
	}
	return sampler.RecordKey(seed, epoch, record)
}
