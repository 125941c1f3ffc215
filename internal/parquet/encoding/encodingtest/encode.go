// Package encodingtest writes the encodings of Parquet, in every form that the format permits,
// chosen at random, for tests.
package encodingtest

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// PackBits packs numbers of width bits, from the lowest bit on, and fills up the last byte.
func PackBits(numbers []uint64, width int) []byte {
	out := make([]byte, (len(numbers)*width+7)/8)
	for i, v := range numbers {
		for b := range width {
			if v>>b&1 == 1 {
				out[(i*width+b)/8] |= 1 << ((i*width + b) % 8)
			}
		}
	}
	return out
}

// Runs writes numbers in runs and packed groups of random lengths.
func Runs(rng *rand.Rand, numbers []uint32, width int) (out []byte) {
	for len(numbers) > 0 {
		same := 1
		for same < len(numbers) && numbers[same] == numbers[0] {
			same++
		}
		if same > 1 && rng.IntN(3) > 0 || rng.IntN(10) == 0 {
			n := 1 + rng.IntN(same)
			out = binary.AppendUvarint(out, uint64(n)<<1)
			for i := range (width + 7) / 8 {
				out = append(out, byte(numbers[0]>>(8*i)))
			}
			numbers = numbers[n:]
			continue
		}
		groups := 1 + rng.IntN(5)
		if rng.IntN(8) == 0 {
			groups = 1 + rng.IntN(200)
		}
		n := min(len(numbers), 8*groups)
		if n%8 != 0 && n < len(numbers) {
			n -= n % 8
		}
		groups = (n + 7) / 8
		out = binary.AppendUvarint(out, uint64(groups)<<1|1)
		wide := make([]uint64, groups*8)
		for i, v := range numbers[:n] {
			wide[i] = uint64(v)
		}
		out = append(out, PackBits(wide, width)...)
		numbers = numbers[n:]
	}
	return out
}

// Delta writes integers as differences, in blocks of a size.
func Delta(numbers []int64, block, parts int) (out []byte) {
	out = binary.AppendUvarint(out, uint64(block))
	out = binary.AppendUvarint(out, uint64(parts))
	out = binary.AppendUvarint(out, uint64(len(numbers)))
	if len(numbers) == 0 {
		return append(out, 0)
	}
	out = binary.AppendVarint(out, numbers[0])
	for at := 1; at < len(numbers); at += block {
		end := min(at+block, len(numbers))
		least := numbers[at] - numbers[at-1]
		for i := at; i < end; i++ {
			least = min(least, numbers[i]-numbers[i-1])
		}
		out = binary.AppendVarint(out, least)
		var widths, body []byte
		for part := range parts {
			list := make([]uint64, block/parts)
			width := 0
			for k := range list {
				if i := at + part*len(list) + k; i < end {
					list[k] = uint64(numbers[i] - numbers[i-1] - least)
					width = max(width, bits.Len64(list[k]))
				}
			}
			if at+part*len(list) < end {
				body = append(body, PackBits(list, width)...)
			} else {
				width = 77 // a writer may leave anything for a part without values
			}
			widths = append(widths, byte(width))
		}
		out = append(append(out, widths...), body...)
	}
	return out
}
