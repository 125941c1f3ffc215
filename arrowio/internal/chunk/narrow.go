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
// It takes eight at a time, which is twice as fast as one by one.
func narrow(dst, src []byte, width int) error {
	lowest, span := uint32(math.MaxUint32)<<(8*width-1), uint32(3)<<(8*width-1)
	largest := uint32(0) // above the lowest
	for ; len(dst) >= 8*width; dst, src = dst[8*width:], src[32:] {
		from := (*[32]byte)(src)
		if width == 1 {
			to := (*[8]byte)(dst)
			for i := range to {
				v := binary.LittleEndian.Uint32(from[4*i:])
				largest, to[i] = max(largest, v-lowest), byte(v)
			}
			continue
		}
		to := (*[16]byte)(dst)
		for i := range 8 {
			v := binary.LittleEndian.Uint32(from[4*i:])
			largest = max(largest, v-lowest)
			binary.LittleEndian.PutUint16(to[2*i:], uint16(v))
		}
	}
	for ; len(dst) > 0; dst, src = dst[width:], src[4:] {
		v := binary.LittleEndian.Uint32(src)
		largest = max(largest, v-lowest)
		if dst[0] = byte(v); width == 2 {
			dst[1] = byte(v >> 8)
		}
	}
	if largest >= span {
		return fmt.Errorf("the value %d has more than %d bits", int32(largest+lowest), 8*width)
	}
	return nil
}
