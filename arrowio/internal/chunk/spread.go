package chunk

import "encoding/binary"

// spread moves the values, which lie one after the other, to their slots. It begins with
// the last, so that it overwrites no value that it still has to move.
func (c *Column) spread() {
	from := c.Present
	if c.Bytes.Offsets != nil {
		ends := append(c.Bytes.Offsets, make([]int64, c.Values-c.Present)...)
		for slot := c.Values - 1; slot >= 0; slot-- {
			ends[slot+1] = ends[from]
			if c.Valid.Get(slot) {
				from--
			}
		}
		c.Bytes.Offsets = ends
		return
	}
	w := int64(c.Width)
	fixed := append(c.Fixed, make([]byte, (c.Values-c.Present)*w)...)
	for end := c.Values; end > 0 && from < end; {
		n := (end-1)%8 + 1 // slots of one byte of the bitmap
		end -= n
		switch valid := c.Valid[end/8]; {
		case valid == 0:
			clear(fixed[end*w : (end+n)*w])
		case valid == byte(1<<n-1):
			from -= n
			copy(fixed[end*w:(end+n)*w], fixed[from*w:])
		case w == 4:
			from = spread4(fixed, end, n, from, valid)
		case w == 8:
			from = spread8(fixed, end, n, from, valid)
		default:
			from = spreadAny(fixed, end, n, from, valid, w)
		}
	}
	c.Fixed = fixed
}

// spread4 moves values of 4 bytes to the slots from `at` to at+n-1 and sets those of nulls
// to 0. Valid has their bits, and from is the number of values that were not moved. It
// returns how many are left. No branch depends on a bit, because it would be guessed wrong.
func spread4(fixed []byte, at, n, from int64, valid byte) int64 {
	for k := n - 1; k >= 0; k-- {
		bit := uint32(valid>>k) & 1
		v := binary.LittleEndian.Uint32(fixed[4*(max(from, 1)-1):])
		binary.LittleEndian.PutUint32(fixed[4*(at+k):], v&-bit)
		from -= int64(bit)
	}
	return from
}

// spread8 does the same as spread4 for values of 8 bytes.
func spread8(fixed []byte, at, n, from int64, valid byte) int64 {
	for k := n - 1; k >= 0; k-- {
		bit := uint64(valid>>k) & 1
		v := binary.LittleEndian.Uint64(fixed[8*(max(from, 1)-1):])
		binary.LittleEndian.PutUint64(fixed[8*(at+k):], v&-bit)
		from -= int64(bit)
	}
	return from
}

// spreadAny does the same as spread4 for values of w bytes.
func spreadAny(fixed []byte, at, n, from int64, valid byte, w int64) int64 {
	for k := n - 1; k >= 0; k-- {
		to := fixed[(at+k)*w : (at+k+1)*w]
		switch {
		case valid>>k&1 == 0:
			clear(to)
			continue
		case w == 1:
			to[0] = fixed[from-1]
		default:
			copy(to, fixed[(from-1)*w:])
		}
		from--
	}
	return from
}
