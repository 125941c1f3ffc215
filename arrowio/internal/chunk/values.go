package chunk

import (
	"errors"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// add adds the values of a page, and a slot for every null.
func (d *decoder) add(how parquet.Encoding, src []byte, slots *levels.Slots) error {
	v, nulls := &d.values, slots.Count-slots.Present
	switch {
	case d.shapeOnly:
		return nil
	case nulls == 0:
		return d.decode(v, how, src, slots.Present)
	case d.leaf.Physical == parquet.ByteArray:
		return d.addText(how, src, slots)
	}
	start := len(v.fixed)
	if asStored := v.width == d.width && d.leaf.Physical != parquet.Boolean; how == parquet.Plain && asStored {
		if len(src) < slots.Present*v.width {
			return errShort
		}
		v.fixed = d.grow(v, slots.Count)
	} else {
		if err := d.decode(v, how, src, slots.Present); err != nil {
			return err
		}
		v.fixed = d.grow(v, nulls)
		src = v.fixed[start:]
	}
	spread(v.fixed[start:], src[:slots.Present*v.width], slots, v.width)
	return nil
}

// addText adds the values of a page, which have variable lengths, and a slot for every null.
func (d *decoder) addText(how parquet.Encoding, src []byte, slots *levels.Slots) error {
	b := &d.values.bytes
	if err := d.decode(&d.values, how, src, slots.Present); err != nil {
		return err
	}
	b.Offsets = append(b.Offsets, make([]int64, slots.Count-slots.Present)...)
	spreadEnds(b.Offsets[len(b.Offsets)-slots.Count-1:], slots)
	return nil
}

// decode adds n values that are stored in an encoding.
func (d *decoder) decode(to *values, how parquet.Encoding, src []byte, n int) error {
	if n == 0 || d.shapeOnly {
		return nil
	}
	to.count += n
	if to == &d.values {
		to.bytes.Limit = min(d.limit, d.free()+int64(len(to.bytes.Data)))
	}
	if to == &d.values && d.leaf.Narrow > 0 {
		return d.decodeNarrow(how, src, n)
	}
	if how == parquet.RLEDictionary || how == parquet.PlainDictionary {
		return d.lookUp(to, src, n)
	}
	if d.leaf.Physical == parquet.ByteArray {
		return decodeBytes(&to.bytes, how, src, n)
	}
	if plain := how == parquet.Plain || how == parquet.ByteStreamSplit; plain && len(src) < n*d.leaf.Physical.Bits(d.leaf.Length)/8 {
		return errShort // before memory is allocated
	}
	start := len(to.fixed)
	to.fixed = d.grow(to, n)
	return d.decodeFixed(to.fixed[start:], how, src, n)
}

// grow adds n values of a fixed width.
func (d *decoder) grow(to *values, n int) []byte {
	size := len(to.fixed) + n*to.width
	if size <= cap(to.fixed) {
		return to.fixed[:size]
	}
	all := size
	if to == &d.values { // the pages have more values than their bytes made likely
		all = max(all, int(d.chunk.Values)*to.width)
	}
	return append(make([]byte, 0, all), to.fixed...)[:size]
}

// errShort is the error of a page with fewer bytes than its values take.
var errShort = errors.New("the page ends before its last value")

func decodeBytes(to *encoding.Bytes, how parquet.Encoding, src []byte, n int) (err error) {
	switch how {
	case parquet.Plain:
		err = encoding.PlainBytes(to, src, n)
	case parquet.DeltaLengthByteArray:
		err = encoding.DeltaLengths(to, src, n)
	case parquet.DeltaByteArray:
		err = encoding.DeltaBytes(to, src, n)
	default:
		err = unknown(how, parquet.ByteArray)
	}
	if _, over := errors.AsType[encoding.LimitError](err); over {
		return tooLarge("%v", err)
	}
	return err
}

func unknown(how parquet.Encoding, p parquet.Physical) error {
	return parquet.Unsupported(fmt.Sprintf("values of type %v in the encoding %v are not read", p, how))
}

// decodeFixed sets dst to n values of a fixed width.
func (d *decoder) decodeFixed(dst []byte, how parquet.Encoding, src []byte, n int) error {
	p := d.leaf.Physical
	switch {
	case how == parquet.Plain && p == parquet.Boolean:
		return encoding.PlainBooleans(dst, src)
	case how == parquet.Plain:
		return encoding.PlainFixed(dst, src)
	case how == parquet.RLE && p == parquet.Boolean:
		return encoding.RunBooleans(dst, src)
	case how == parquet.ByteStreamSplit && p != parquet.Boolean && p != parquet.Int96:
		return encoding.ByteStreamSplit(dst, src, d.width)
	case how == parquet.DeltaBinaryPacked && (p == parquet.Int32 || p == parquet.Int64):
		_, err := encoding.Delta(dst, src, d.width)
		return err
	case how == parquet.DeltaByteArray && p == parquet.Fixed:
		b := encoding.Bytes{Limit: int64(len(dst))}
		if err := encoding.DeltaBytes(&b, src, n); err != nil {
			return err
		}
		for i := range n {
			if len(b.Value(i)) != d.width {
				return fmt.Errorf("a value of %d bytes instead of %d", len(b.Value(i)), d.width)
			}
		}
		copy(dst, b.Data)
		return nil
	}
	return unknown(how, p)
}

// lookUp adds n values of the dictionary.
func (d *decoder) lookUp(to *values, src []byte, n int) error {
	if d.dictionary == nil || to == d.dictionary {
		return errors.New("indices into a dictionary that is not there")
	}
	d.indices = slices.Grow(d.indices[:0], n)[:n]
	if err := encoding.Indices(d.indices, src); err != nil {
		return err
	}
	if d.leaf.Physical == parquet.ByteArray {
		return to.bytes.Gather(&d.dictionary.bytes, d.indices)
	}
	start := len(to.fixed)
	to.fixed = d.grow(to, n)
	return encoding.GatherFixed(to.fixed[start:], d.dictionary.fixed, d.dictionary.count, d.indices)
}
