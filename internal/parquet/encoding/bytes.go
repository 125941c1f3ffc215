package encoding

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Bytes holds values of variable length, one after the other: value i is
// Data[Offsets[i]:Offsets[i+1]]. The zero value with a Limit holds none.
type Bytes struct {
	Offsets []int64 // empty, or 0 and the ends of the values
	Data    []byte
	Limit   int64 // the largest length of Data
	Likely  int64 // Data grows to this length at once
}

// LimitError is the error of values that take more bytes than Bytes.Limit.
type LimitError int64

// Error implements error.
func (e LimitError) Error() string {
	return fmt.Sprintf("the values have more than %d bytes", int64(e))
}

// Len returns the number of values.
func (b *Bytes) Len() int { return max(0, len(b.Offsets)-1) }

// Value returns value i.
func (b *Bytes) Value(i int) []byte { return b.Data[b.Offsets[i]:b.Offsets[i+1]] }

// grow makes room for n values of size bytes in all.
func (b *Bytes) grow(n int, size int64) error {
	if size > b.Limit-int64(len(b.Data)) {
		return LimitError(b.Limit)
	}
	if len(b.Offsets) == 0 {
		b.Offsets = append(make([]int64, 0, n+1), 0)
	}
	if need := int64(len(b.Data)) + size; need > int64(cap(b.Data)) {
		b.Data = append(make([]byte, 0, b.room(need)), b.Data...)
	}
	return nil
}

// PlainBytes adds n values: each is its length in four bytes, and its bytes.
func PlainBytes(to *Bytes, src []byte, n int) error {
	if int64(n)*4 > int64(len(src)) {
		return errShort
	}
	if err := to.grow(n, int64(len(src)-4*n)); err != nil {
		return err
	}
	data, offsets := to.Data, slices.Grow(to.Offsets, n)
	for range n {
		if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
			return errShort
		}
		end := 4 + int(binary.LittleEndian.Uint32(src))
		data = appendValue(data, src[4:], end-4)
		offsets = append(offsets, int64(len(data)))
		src = src[end:]
	}
	to.Data, to.Offsets = data, offsets
	return nil
}

// appendValue adds the first n bytes of src to data, which has room for them. If both have
// 32 bytes more, it copies 32 bytes at once instead of calling a function.
func appendValue(data, src []byte, n int) []byte {
	if at := len(data); n <= 32 && len(src) >= 32 && cap(data)-at >= 32 {
		*(*[32]byte)(data[at : at+32]) = *(*[32]byte)(src)
		return data[:at+n]
	}
	return append(data, src[:n]...)
}

// Gather adds the values of a dictionary with these indices. It checks each index.
func (b *Bytes) Gather(dictionary *Bytes, indices []uint32) error {
	size, ends := int64(0), dictionary.Offsets
	for _, k := range indices {
		if uint64(k)+1 >= uint64(len(ends)) {
			return outside(k, dictionary.Len())
		}
		size += ends[k+1] - ends[k]
	}
	if err := b.grow(len(indices), size); err != nil {
		return err
	}
	data, offsets := b.Data, slices.Grow(b.Offsets, len(indices))
	for _, k := range indices {
		from, to := ends[k], ends[k+1]
		data = appendValue(data, dictionary.Data[from:], int(to-from))
		offsets = append(offsets, int64(len(data)))
	}
	b.Data, b.Offsets = data, offsets
	return nil
}

// room returns the next capacity of Data, for need bytes: the likely length, or twice the
// capacity. But the last step goes from at most half of the limit to the limit, so that old
// and new bytes together take at most one and a half times the limit.
func (b *Bytes) room(need int64) int64 {
	if likely := min(b.Likely, b.Limit); need <= likely {
		return likely
	}
	room := max(need, 2*int64(cap(b.Data)))
	if room > b.Limit/2 {
		return b.Limit
	}
	return room
}
