package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// arrowBuffers returns the buffers of a column as its field has them. If lists is true,
// the column has no values. Null lists of a fixed size grow it to at most limit bytes.
func arrowBuffers(col *chunk.Column, leaf *parquet.Leaf, field *arrowtype.Field, lists bool, limit int64) (*buffers.Decoded, error) {
	last := len(field.Levels) - 1
	text := field.Inline(last)
	if text {
		last-- // the offsets of the text
	}
	outer := field.Structs()
	if len(col.Lists) != last-outer {
		return nil, fmt.Errorf("lists nested %d deep instead of %d", len(col.Lists), last-outer)
	}
	out := &buffers.Decoded{Levels: make([]buffers.Level, len(field.Levels))}
	if outer > 0 {
		out.Levels[0] = buffers.Level{Valid: col.Outer, Length: col.Values}
		out.Bytes += int64(len(col.Outer))
	}
	for n := outer; n < last; n++ {
		list, l := field.List(n), &col.Lists[n-outer]
		if list.Direct() {
			if err := col.FixLists(n-outer, int64(list.Length()), limit); err != nil {
				return nil, err
			}
		}
		to := &out.Levels[n]
		to.Valid, to.Length = l.Valid, l.Len()
		if !list.Direct() {
			to.Data = offsetBytes(l.Offsets, int(list.Buffer().Bits/8))
		}
		out.Bytes += int64(len(to.Valid) + len(to.Data))
	}
	to := &out.Levels[last]
	to.Valid, to.Length = col.Valid, col.Values
	switch {
	case text && !lists:
		if err := textBuffers(col, out.Levels[last:], int(field.Levels[last].Buffer().Bits/8)); err != nil {
			return nil, err
		}
		out.Bytes += int64(len(out.Levels[last+1].Data))
	case !lists:
		var err error
		if to.Data, err = valueBytes(col, leaf, field.Levels[last].(arrowtype.Values)); err != nil {
			return nil, err
		}
	}
	out.Bytes += int64(len(to.Valid) + len(to.Data))
	return out, nil
}

// textBuffers sets the offsets and the bytes of text from col.Bytes.
func textBuffers(col *chunk.Column, to []buffers.Level, width int) error {
	if col.Present == 0 { // the leaf may be of another type
		to[0].Data = make([]byte, (col.Values+1)*int64(width))
		return nil
	}
	if int64(len(col.Bytes.Offsets)) != col.Values+1 {
		return fmt.Errorf("%d values of type %v instead of %d", len(col.Bytes.Offsets)-1, parquet.ByteArray, col.Values)
	}
	if size := int64(len(col.Bytes.Data)); width == 4 && size > math.MaxInt32 {
		return parquet.TooLarge(fmt.Sprintf("%d bytes of text in a column with offsets of 32 bits", size))
	}
	to[0].Data = offsetBytes(col.Bytes.Offsets, width)
	to[1].Data, to[1].Length = col.Bytes.Data, int64(len(col.Bytes.Data))
	return nil
}

// offsetBytes writes offsets as integers of width bytes.
func offsetBytes(offsets []int64, width int) []byte {
	b := make([]byte, len(offsets)*width)
	if width == 4 {
		for i, o := range offsets {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(o))
		}
		return b
	}
	for i, o := range offsets {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(o))
	}
	return b
}

// valueBytes returns the values as Arrow stores them. The result takes the memory of col.Fixed, or
// it is used again.
func valueBytes(col *chunk.Column, leaf *parquet.Leaf, values arrowtype.Values) ([]byte, error) {
	size := values.Size()
	if leaf.Physical != parquet.Boolean && int64(8*col.Width) == size {
		return col.Fixed, nil
	}
	defer spare.Give(col.Fixed)
	switch {
	case col.Present == 0: // the leaf may be of another type
		return make([]byte, (col.Values*size+7)/8), nil
	case leaf.Physical == parquet.Boolean && size == 1:
		return packBits(col.Fixed), nil
	case leaf.Physical == parquet.Int96 && size == 64:
		return nanoseconds(col)
	}
	return nil, fmt.Errorf("values of type %v cannot be values of %d bits", leaf.Physical, size)
}

// packBits packs booleans, which are bytes, into bits.
func packBits(values []byte) []byte {
	b := make([]byte, (len(values)+7)/8)
	whole := len(values) / 8
	for i := range whole { // each byte, 0 or 1, moves to its bit in the highest byte
		b[i] = byte(binary.LittleEndian.Uint64(values[8*i:]) * 0x0102040810204080 >> 56)
	}
	for i := 8 * whole; i < len(values); i++ {
		b[i>>3] |= values[i] << (i & 7)
	}
	return b
}

// unixDay is the Julian day number of 1970-01-01.
const unixDay = 2440588

// nanoseconds returns timestamps of the type INT96, which are the nanoseconds of a day and
// the Julian day number, as nanoseconds since 1970.
func nanoseconds(col *chunk.Column) ([]byte, error) {
	const day = 24 * 60 * 60 * 1_000_000_000
	b := make([]byte, 0, col.Values*8)
	for i := range col.Values {
		v, at := col.Fixed[12*i:], int64(0)
		if col.Valid.Get(i) {
			days, ns := int64(binary.LittleEndian.Uint32(v[8:]))-unixDay, int64(binary.LittleEndian.Uint64(v))
			if ns < 0 || ns > day {
				return nil, fmt.Errorf("a timestamp %d nanoseconds after the start of its day", ns)
			}
			at = days*day + ns
			if days < math.MinInt64/day-1 || days > math.MaxInt64/day || (at < 0) != (days < 0) {
				return nil, parquet.OutOfRange("the timestamp " + time.Unix(days*(day/1e9), ns).UTC().Format("2006-01-02T15:04:05") +
					" is outside of the years 1678 to 2261, which 64 bits of nanoseconds hold")
			}
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return b, nil
}
