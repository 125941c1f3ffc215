package encoding

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
	for k := range width {
		stream := src[k*n : (k+1)*n]
		for i, b := range stream {
			dst[i*width+k] = b
		}
	}
	return nil
}
