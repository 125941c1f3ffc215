package chunk

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/meshfeed/meshfeed/internal/parquet"
)

// decodeNarrow adds n integers to the values. They are stored in 32 bits, but Arrow's have
// fewer.
func (d *decoder) decodeNarrow(how parquet.Encoding, src []byte, n int) error {
	if how != parquet.Plain {
		wide := values{fixed: d.wide[:0], width: d.width}
		if err := d.decode(&wide, how, src, n); err != nil {
			return err
		}
		src, d.wide = wide.fixed, wide.fixed
	}
	if len(src) < n*d.width {
		return errShort
	}
	start := len(d.values.fixed)
	d.values.fixed = d.grow(&d.values, n)
	return narrow(d.values.fixed[start:], src[:n*d.width], d.values.width)
}

// narrow sets dst to integers of width bytes, 1 or 2, signed or not, from integers of 32 bits.
func narrow(dst, src []byte, width int) error {
	lowest, span := uint32(math.MaxUint32)<<(8*width-1), uint32(3)<<(8*width-1)
	largest := uint32(0) // above the lowest
	if width == 1 {
		for i := range dst {
			v := binary.LittleEndian.Uint32(src[4*i : 4*i+4])
			largest = max(largest, v-lowest)
			dst[i] = byte(v)
		}
	} else {
		for i := range len(dst) / 2 {
			v := binary.LittleEndian.Uint32(src[4*i : 4*i+4])
			largest = max(largest, v-lowest)
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], uint16(v))
		}
	}
	if largest >= span {
		return fmt.Errorf("the value %d has more than %d bits", int32(largest+lowest), 8*width)
	}
	return nil
}
