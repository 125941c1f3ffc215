package levels

import (
	"encoding/binary"
	"math/bits"
)

// Bitmap marks which of some slots hold a value, from the lowest bit of the first byte
// on, as Arrow does. It is nil as long as all of them do.
type Bitmap []byte

// Get reports whether slot i holds a value.
func (b Bitmap) Get(i int64) bool { return b == nil || b[i>>3]>>(i&7)&1 == 1 }

// Set marks slot i if valid is true. The bitmap has a zero for the slot.
func (b Bitmap) Set(i int64, valid bool) {
	if valid {
		b[i>>3] |= 1 << (i & 7)
	}
}

// bitmapBuilder builds a bitmap slot by slot.
type bitmapBuilder struct {
	bits Bitmap // with room for further slots; the first has a byte
	n    int64  // slots
}

// room is the number of bytes from the next slot's byte on.
const room = 16

// add adds n slots, at most 64. Word has their bits, and zeros above.
func (b *bitmapBuilder) add(word uint64, n int) {
	if b.bits == nil {
		if word == ones(n) {
			b.n += int64(n)
			return
		}
		b.start()
	}
	used := b.n & 7
	to := b.bits[b.n>>3:][:room]
	binary.LittleEndian.PutUint64(to, uint64(to[0])|word<<used)
	to[8] = byte(word >> (64 - used))
	b.n += int64(n)
	b.grow()
}

// repeat adds n slots that hold a value.
func (b *bitmapBuilder) repeat(n int) {
	if b.bits == nil {
		b.n += int64(n)
		return
	}
	for ; n > 0; n -= 64 {
		b.add(ones(n), min(n, 64))
	}
}

// start makes the bitmap of the slots so far. All of them hold a value.
func (b *bitmapBuilder) start() {
	whole := b.n >> 3
	b.bits = make(Bitmap, whole+room, 2*(whole+room))
	for i := range b.bits[:whole] {
		b.bits[i] = 0xff
	}
	b.bits[whole] = byte(ones(int(b.n & 7)))
}

// grow makes room for further slots.
func (b *bitmapBuilder) grow() {
	need := int(b.n>>3) + room
	if need > cap(b.bits) {
		b.bits = append(make(Bitmap, 0, 2*need), b.bits...)
	}
	b.bits = b.bits[:need]
}

// word returns the bits of 64 slots from slot i on. Those of slots that there are not are
// undefined.
func (b *bitmapBuilder) word(i int64) uint64 {
	if b.bits == nil {
		return ones(64)
	}
	from, used := b.bits[i>>3:][:room], i&7
	return binary.LittleEndian.Uint64(from)>>used | uint64(from[8])<<(64-used)
}

// bitmap returns the bitmap. No slots are added any more.
func (b *bitmapBuilder) bitmap() Bitmap {
	if b.bits == nil {
		return nil
	}
	return b.bits[:(b.n+7)/8]
}

// ones returns a word with the lowest n bits set: all if n is 64 or more.
func ones(n int) uint64 { return uint64(1)<<n - 1 }

// extract returns the bits of word at the ones of mask, one after the other.
func extract(word, mask uint64) (out uint64) {
	if mask&(mask+1) == 0 { // the ones are the lowest bits
		return word & mask
	}
	for i := 0; mask != 0; i++ {
		out |= word >> bits.TrailingZeros64(mask) & 1 << i
		mask &= mask - 1
	}
	return out
}
