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
	switch width {
	case 4:
		a, b, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
		for i := range a {
			v := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
			binary.LittleEndian.PutUint32(dst[4*i:], v)
		}
		return nil
	case 8:
		join8(dst, src, n)
		return nil
	}
	for k := range width {
		stream := src[k*n : (k+1)*n]
		for i, b := range stream {
			dst[i*width+k] = b
		}
	}
	return nil
}

// join8 sets dst to n values of 8 bytes from their 8 streams.
func join8(dst, src []byte, n int) {
	a, b, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	e, f, g, h := src[4*n:5*n], src[5*n:6*n], src[6*n:7*n], src[7*n:8*n]
	for i := range a {
		low := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		high := uint32(e[i]) | uint32(f[i])<<8 | uint32(g[i])<<16 | uint32(h[i])<<24
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(low)|uint64(high)<<32)
	}
}
