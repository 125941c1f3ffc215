package encoding

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Delta sets dst to integers of width bytes, 4 or 8, that are stored as differences: the
// encoding DELTA_BINARY_PACKED. It returns the bytes after the integers. Sums wrap around.
func Delta(dst, src []byte, width int) (rest []byte, err error) {
	d := deltas{src: src, width: width}
	block, parts := d.uvarint(), d.uvarint() // values of a block, and its parts of equal size
	count, first := d.uvarint(), d.varint()
	switch n := len(dst) / width; {
	case d.short:
		return nil, errShort
	case parts == 0 || block == 0 || block > 1<<31 || block%parts != 0 || block/parts%32 != 0:
		return nil, fmt.Errorf("blocks of %d differences in %d parts", block, parts)
	case count != uint64(n):
		return nil, fmt.Errorf("the page holds %d differences, but %d values", count, n)
	case n == 0:
		return d.src, nil
	}
	d.add(dst[:width], first)
	for dst = dst[width:]; len(dst) > 0; {
		size := min(len(dst), int(block)*width)
		if err := d.block(dst[:size], int(parts), int(block/parts)); err != nil {
			return nil, err
		}
		dst = dst[size:]
	}
	return d.src, nil
}

// deltas reads differences.
type deltas struct {
	src   []byte
	width int   // bytes of a value
	last  int64 // value
	short bool  // src ended
}

// add sets dst to the next value, which differs from the last one by a difference.
func (d *deltas) add(dst []byte, difference int64) {
	if d.last += difference; d.width == 4 {
		binary.LittleEndian.PutUint32(dst, uint32(d.last))
	} else {
		binary.LittleEndian.PutUint64(dst, uint64(d.last))
	}
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
func (d *deltas) block(dst []byte, parts, size int) error {
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
		n := min(len(dst), size*d.width)
		if width > 64 {
			return fmt.Errorf("differences of %d bits", width)
		}
		if stored := size / 8 * int(width); len(d.src) >= stored {
			d.part(dst[:n], d.src, int(width), least)
			d.src = d.src[stored:]
		} else {
			return errShort
		}
		dst = dst[n:]
	}
	return nil
}

// part reads the values of a part, which begins at the start of src. Their differences
// have this many bits.
func (d *deltas) part(dst, src []byte, bits int, least int64) {
	if bits > 32 {
		for bit := 0; len(dst) > 0; bit += bits {
			d.add(dst, least+int64(packed(src, bit, bits)))
			dst = dst[d.width:]
		}
		return
	}
	var differences [32]uint32 // in 4*bits bytes
	for len(dst) > 0 {
		n := min(len(dst)/d.width, len(differences))
		Unpack(differences[:n], src, bits)
		d.sums(dst[:n*d.width], differences[:n], least)
		dst, src = dst[n*d.width:], src[4*bits:]
	}
}

// sums sets dst to the next values.
func (d *deltas) sums(dst []byte, differences []uint32, least int64) {
	last := d.last
	if d.width == 4 {
		for i, difference := range differences {
			last += least + int64(difference)
			binary.LittleEndian.PutUint32(dst[4*i:4*i+4], uint32(last))
		}
	} else {
		for i, difference := range differences {
			last += least + int64(difference)
			binary.LittleEndian.PutUint64(dst[8*i:8*i+8], uint64(last))
		}
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
	sizes, src, err := readLengths(src, n)
	if err != nil {
		return err
	}
	if err := to.grow(n, int64(len(src))); err != nil {
		return err
	}
	data, offsets := to.Data, slices.Grow(to.Offsets, n)
	for i := range n {
		size := sizes.at(i)
		if size > int64(len(src)) {
			return errShort
		}
		data = appendValue(data, src, int(size))
		offsets = append(offsets, int64(len(data)))
		src = src[size:]
	}
	to.Data, to.Offsets = data, offsets
	return nil
}

// lengths holds numbers from 0 to 2^31 in 8 bytes each.
type lengths []byte

func (l lengths) at(i int) int64 { return int64(binary.LittleEndian.Uint64(l[8*i : 8*i+8])) }

// readLengths reads n lengths, and returns the bytes after them.
func readLengths(src []byte, n int) (l lengths, rest []byte, err error) {
	l = make(lengths, 8*n)
	if rest, err = Delta(l, src, 8); err != nil {
		return nil, nil, err
	}
	for i := range n {
		if size := l.at(i); size < 0 || size > 1<<31 {
			return nil, nil, fmt.Errorf("value %d has %d bytes", i, size)
		}
	}
	return l, rest, nil
}

// DeltaBytes adds n values: the encoding DELTA_BYTE_ARRAY. Each is a prefix of the value
// before it and more bytes. The length of the prefix is stored. The first prefix is empty.
func DeltaBytes(to *Bytes, src []byte, n int) error {
	prefixes, src, err := readLengths(src, n)
	if err != nil {
		return err
	}
	suffixes, src, err := readLengths(src, n)
	if err != nil {
		return err
	}
	size := int64(len(src))
	for i := range n {
		size += prefixes.at(i) // up to 2^31 values of 2^31 bytes
	}
	if err := to.grow(n, size); err != nil {
		return err
	}
	data, offsets, before := to.Data, slices.Grow(to.Offsets, n), []byte{}
	for i := range n {
		prefix, suffix := prefixes.at(i), suffixes.at(i)
		if prefix > int64(len(before)) {
			return fmt.Errorf("value %d begins with %d bytes of the value before it, which has %d", i, prefix, len(before))
		}
		if suffix > int64(len(src)) {
			return errShort
		}
		start := len(data)
		data = appendValue(data, before, int(prefix))
		data = appendValue(data, src, int(suffix))
		offsets = append(offsets, int64(len(data)))
		before, src = data[start:], src[suffix:]
	}
	to.Data, to.Offsets = data, offsets
	return nil
}
