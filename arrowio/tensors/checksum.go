package tensors

import "hash/crc32"

// checksum is what a zip file says of a member. The checksum of an array is compared if all its
// bytes are read, because a zip file has no checksum of a part.
type checksum struct {
	has    bool
	member uint32 // over the header and the elements
	head   uint32 // over the header
}

// matches reports whether the chunks of an array, n bytes in all, have the checksum of the member.
func (c checksum) matches(chunks []uint32, n int) bool {
	sum := c.head
	for _, next := range chunks {
		size := min(n, chunk)
		sum, n = joined(sum, next, size), n-size
	}
	return sum == c.member
}

// joined returns the checksum of bytes that follow each other, the second ones being n. A checksum
// is the remainder of a polynomial: n more bytes multiply the remainder of the first bytes by x^8n.
func joined(first, second uint32, n int) uint32 {
	shift, power := uint32(1)<<31, uint32(1)<<23 // x^0 and x^8; the highest power is bit 0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			shift = product(shift, power)
		}
		power = product(power, power)
	}
	return product(shift, first) ^ second
}

// product multiplies two polynomials modulo the polynomial of CRC-32.
func product(a, b uint32) (p uint32) {
	for bit := uint32(1) << 31; bit > 0; bit >>= 1 {
		if a&bit != 0 {
			p ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return p
}
