package encoding

import "encoding/binary"

// PlainFixed sets dst to values of a fixed width that are stored one after the other.
func PlainFixed(dst, src []byte) error {
	if copy(dst, src) < len(dst) {
		return errShort
	}
	return nil
}

// ByteStreamSplit sets dst to values of width bytes. The page has the first bytes of
// all values, then the second bytes, and so on.
func ByteStreamSplit(dst, src []byte, width int) error {
	if len(src) < len(dst) || width <= 0 {
		return errShort
	}
	n := len(dst) / width
	first := 0 // value that is not joined yet
	switch width {
	case 4:
		first = join4(dst, src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n])
	case 8:
		first = join8(dst, src[:8*n], n)
	}
	for k := range width {
		for i := first; i < n; i++ {
			dst[i*width+k] = src[k*n+i]
		}
	}
	return nil
}

// join4 sets dst to values of 4 bytes from their streams, 8 values at a time, and returns how
// many.
func join4(dst, first, second, third, fourth []byte) (n int) {
	for ; n+8 <= len(first); n += 8 {
		a, b, c, d := wordAt(first, n), wordAt(second, n), wordAt(third, n), wordAt(fourth, n)
		a, b = exchange1(a, b)
		c, d = exchange1(c, d)
		a, c = exchange2(a, c)
		b, d = exchange2(b, d)
		a, b = exchange4(a, b)
		c, d = exchange4(c, d)
		to := (*[32]byte)(dst[4*n:])
		binary.LittleEndian.PutUint64(to[:8], a)
		binary.LittleEndian.PutUint64(to[8:], c)
		binary.LittleEndian.PutUint64(to[16:], b)
		binary.LittleEndian.PutUint64(to[24:], d)
	}
	return n
}

// join8 does the same as join4 for values of 8 bytes. Their streams of this size lie one
// after the other.
func join8(dst, src []byte, size int) (n int) {
	for ; n+8 <= size; n += 8 {
		a, b, c, d := wordAt(src, n), wordAt(src, size+n), wordAt(src, 2*size+n), wordAt(src, 3*size+n)
		e, f, g, h := wordAt(src, 4*size+n), wordAt(src, 5*size+n), wordAt(src, 6*size+n), wordAt(src, 7*size+n)
		a, b = exchange1(a, b)
		c, d = exchange1(c, d)
		e, f = exchange1(e, f)
		g, h = exchange1(g, h)
		a, c = exchange2(a, c)
		b, d = exchange2(b, d)
		e, g = exchange2(e, g)
		f, h = exchange2(f, h)
		a, e = exchange4(a, e)
		b, f = exchange4(b, f)
		c, g = exchange4(c, g)
		d, h = exchange4(d, h)
		to := (*[64]byte)(dst[8*n:])
		binary.LittleEndian.PutUint64(to[:8], a)
		binary.LittleEndian.PutUint64(to[8:], b)
		binary.LittleEndian.PutUint64(to[16:], c)
		binary.LittleEndian.PutUint64(to[24:], d)
		binary.LittleEndian.PutUint64(to[32:], e)
		binary.LittleEndian.PutUint64(to[40:], f)
		binary.LittleEndian.PutUint64(to[48:], g)
		binary.LittleEndian.PutUint64(to[56:], h)
	}
	return n
}

// Eight words are a square of bytes. Three exchanges of parts of 1, 2 and 4 bytes turn its
// rows into its columns.

// exchange1 exchanges each odd byte of a with the even byte of b before its place.
func exchange1(a, b uint64) (uint64, uint64) {
	const even = 0x00ff00ff00ff00ff
	return a&even | b&even<<8, a>>8&even | b&^even
}

// exchange2 does the same for parts of 2 bytes.
func exchange2(a, b uint64) (uint64, uint64) {
	const even = 0x0000ffff0000ffff
	return a&even | b&even<<16, a>>16&even | b&^even
}

// exchange4 does the same for parts of 4 bytes.
func exchange4(a, b uint64) (uint64, uint64) {
	return a&(1<<32-1) | b<<32, a>>32 | b&^(1<<32-1)
}
