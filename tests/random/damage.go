package random

import (
	"bytes"
	"math/rand/v2"
)

// Damage returns a changed copy of a file. It sets bits and bytes to random or
// critical values, or removes, duplicates or overwrites a range.
func Damage(r *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(data))
		n := min(1+r.IntN(16), len(data)-at)
		switch r.IntN(8) {
		case 0, 1:
			data[at] = byte(r.Uint32())
		case 2:
			data[at] ^= 1 << r.IntN(8)
		case 3:
			data[at] += byte(r.IntN(17) - 8)
		case 4:
			fill := One[byte](r, 0x00, 0xff, 0x7f, 0x80, 0x01)
			word := data[at&^3:]
			for i := range word[:min(len(word), 4<<r.IntN(2))] {
				word[i] = fill
			}
		case 5:
			copy(data[at:at+n], data[r.IntN(len(data)-n+1):])
		case 6:
			data = append(data[:at:at], data[at+n:]...)
		case 7:
			data = append(data[:at+n:at+n], data[at:]...)
		}
		if len(data) == 0 {
			return data
		}
	}
	return data
}
