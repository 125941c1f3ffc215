package encoding

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Delta sets dst to integers that are stored as differences: the encoding
// DELTA_BINARY_PACKED. It returns the bytes after the integers. Sums wrap around, so
// that the low 32 bits are right for integers of 32 bits.
func Delta(dst []int64, src []byte) (rest []byte, err error) {
	d := deltas{src: src}
	block, parts := d.uvarint(), d.uvarint() // values of a block, and its parts of equal size
	count, first := d.uvarint(), d.varint()
	switch {
	case d.short:
		return nil, errShort
	case parts == 0 || block == 0 || block > 1<<31 || block%parts != 0 || block/parts%32 != 0:
		return nil, fmt.Errorf("blocks of %d differences in %d parts", block, parts)
	case count != uint64(len(dst)):
		return nil, fmt.Errorf("the page holds %d differences, but %d values", count, len(dst))
	case len(dst) == 0:
		return d.src, nil
	}
	dst[0], d.last = first, first
	for dst = dst[1:]; len(dst) > 0; {
		n := min(len(dst), int(block))
		if err := d.block(dst[:n], int(parts), int(block/parts)); err != nil {
			return nil, err
		}
		dst = dst[n:]
	}
	return d.src, nil
}

// deltas reads differences.
type deltas struct {
	src   []byte
	last  int64 // value
	short bool  // src ended
}

func (d *deltas) uvarint() uint64 {
	v, n := binary.Uvarint(d.src)
	if n <= 0 {
		d.short, d.src = true, nil
		return 0
	}
	d.src = d.src[n:]
	return v
}

// varint reads a number in the zigzag form.
func (d *deltas) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// block reads a block: the least difference, the number of bits of each part's
// differences, and the parts. The parts after the last value have no bytes.
func (d *deltas) block(dst []int64, parts, size int) error {
	least := d.varint()
	if d.short || len(d.src) < parts {
		return errShort
	}
	widths := d.src[:parts]
	d.src = d.src[parts:]
	for _, width := range widths {
		if len(dst) == 0 {
			break
		}
		n := min(len(dst), size)
		if width > 64 {
			return fmt.Errorf("differences of %d bits", width)
		}
		if stored := size / 8 * int(width); len(d.src) >= stored {
			d.part(dst[:n], d.src[:stored], int(width), least)
			d.src = d.src[stored:]
		} else {
			return errShort
		}
		dst = dst[n:]
	}
	return nil
}

// part reads the values of a part.
func (d *deltas) part(dst []int64, src []byte, width int, least int64) {
	last := d.last
	if width > 32 {
		for i := range dst {
			last += least + int64(packed(src, i*width, width))
			dst[i] = last
		}
		dst = nil
	}
	var differences [32]uint32 // in src[:4*width]
	for len(dst) > 0 {
		n := min(len(dst), len(differences))
		Unpack(differences[:n], src, width)
		for i, difference := range differences[:n] {
			last += least + int64(difference)
			dst[i] = last
		}
		dst, src = dst[n:], src[4*width:]
	}
	d.last = last
}

// packed returns the number of width bits, from 0 to 64, that begins at a bit of src.
func packed(src []byte, bit, width int) uint64 {
	if width == 0 {
		return 0
	}
	at, shift := bit>>3, bit&7
	var word [9]byte
	if len(src) >= at+9 {
		word = [9]byte(src[at:])
	} else {
		copy(word[:], src[at:])
	}
	low := binary.LittleEndian.Uint64(word[:]) >> shift
	high := uint64(word[8]) << (64 - shift) // no bits if shift is 0
	return (low | high) << (64 - width) >> (64 - width)
}

// DeltaLengths adds n values: their lengths as [Delta], and then their bytes. It is the
// encoding DELTA_LENGTH_BYTE_ARRAY.
func DeltaLengths(to *Bytes, src []byte, n int) error {
	lengths, src, err := deltaLengths(src, n)
	if err != nil {
		return err
	}
	if err := to.grow(n, int64(len(src))); err != nil {
		return err
	}
	data, offsets := to.Data, slices.Grow(to.Offsets, n)
	for _, length := range lengths {
		if length > int64(len(src)) {
			return errShort
		}
		data = appendValue(data, src, int(length))
		offsets = append(offsets, int64(len(data)))
		src = src[length:]
	}
	to.Data, to.Offsets = data, offsets
	return nil
}

// deltaLengths reads n lengths.
func deltaLengths(src []byte, n int) (lengths []int64, rest []byte, err error) {
	lengths = make([]int64, n)
	if rest, err = Delta(lengths, src); err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(lengths, func(length int64) bool { return length < 0 || length > 1<<31 }); i >= 0 {
		return nil, nil, fmt.Errorf("value %d has %d bytes", i, lengths[i])
	}
	return lengths, rest, nil
}

// DeltaBytes adds n values: the encoding DELTA_BYTE_ARRAY. Each is a prefix of the value
// before it, whose length is stored, and more bytes. The first prefix is empty.
func DeltaBytes(to *Bytes, src []byte, n int) error {
	prefixes, src, err := deltaLengths(src, n)
	if err != nil {
		return err
	}
	suffixes := Bytes{Limit: int64(len(src))}
	if err := DeltaLengths(&suffixes, src, n); err != nil {
		return err
	}
	size := int64(len(suffixes.Data))
	for _, length := range prefixes {
		size += length // up to 2^31 values of 2^31 bytes
	}
	if err := to.grow(n, size); err != nil {
		return err
	}
	before := []byte{}
	for i, length := range prefixes {
		if length > int64(len(before)) {
			return fmt.Errorf("value %d begins with %d bytes of the value before it, which has %d", i, length, len(before))
		}
		start := len(to.Data)
		to.Data = append(append(to.Data, before[:length]...), suffixes.Value(i)...)
		to.Offsets = append(to.Offsets, int64(len(to.Data)))
		before = to.Data[start:]
	}
	return nil
}
