package packing

import "math/bits"

// fit packs pieces of these lengths into rows by best-fit-decreasing. All lengths are from 1 to
// length − 1. A row gets most pieces at most, if most is not 0. The result has the row of each piece;
// rows are numbered as they are opened.
func fit(lengths []uint32, length, most int) (rowOf []uint32, rows int) {
	rowOf = make([]uint32, len(lengths))
	rooms := newSet(length)        // rooms that rows have left
	top := make([]uint32, length)  // by room: the row that got it last, counted from 1; 0 for none
	below := make([]uint32, 0, 64) // by row: the row with the same room that got it before
	var held []int                 // by row: its pieces
	for _, i := range descending(lengths, length) {
		n := int(lengths[i])
		room := rooms.next(n)
		var row uint32
		if room < 0 {
			room = length
			below = append(below, 0)
			row = uint32(len(below))
			if most > 0 {
				held = append(held, 0)
			}
		} else {
			row = top[room]
			if top[room] = below[row-1]; top[room] == 0 {
				rooms.remove(room)
			}
		}
		rowOf[i] = row - 1
		if most > 0 {
			if held[row-1]++; held[row-1] == most {
				continue
			}
		}
		if room -= n; room > 0 {
			if top[room] == 0 {
				rooms.add(room)
			}
			below[row-1], top[room] = top[room], row
		}
	}
	return rowOf, len(below)
}

// descending returns the indices of lengths, longest first. Among equal ones the first comes first.
func descending(lengths []uint32, limit int) []uint32 {
	at := make([]uint32, limit+1)
	for _, n := range lengths {
		at[n]++
	}
	sum := uint32(0)
	for n := limit; n >= 0; n-- {
		sum, at[n] = sum+at[n], sum
	}
	sorted := make([]uint32, len(lengths))
	for i, n := range lengths {
		sorted[at[n]] = uint32(i)
		at[n]++
	}
	return sorted
}

// set is a set of numbers below a limit. Its first level has a bit for each number. A bit of a later
// level is 1 if a word of the level before has a 1.
type set [][]uint64

func newSet(limit int) (s set) {
	for words := limit; ; {
		words = (words + 63) / 64
		s = append(s, make([]uint64, words))
		if words <= 1 {
			return s
		}
	}
}

func (s set) add(n int) {
	for _, level := range s {
		level[n/64] |= 1 << (n % 64)
		n /= 64
	}
}

func (s set) remove(n int) {
	for _, level := range s {
		if level[n/64] &^= 1 << (n % 64); level[n/64] != 0 {
			return
		}
		n /= 64
	}
}

// next returns the least member from n on, or -1.
func (s set) next(n int) int {
	for i, level := range s {
		word := n / 64
		if word >= len(level) {
			return -1
		}
		if rest := level[word] >> (n % 64) << (n % 64); rest != 0 {
			n = word*64 + bits.TrailingZeros64(rest)
			for ; i > 0; i-- {
				n = n*64 + bits.TrailingZeros64(s[i-1][n])
			}
			return n
		}
		n = word + 1
	}
	return -1
}
