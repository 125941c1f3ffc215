package chunk

import (
	"math/bits"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// spread sets dst to the values of slots, each of w bytes. Src has the values that are not
// null, one after the other, and may be the beginning of dst. The others are set to 0.
// Spread begins with the last slot, so that it overwrites no value that it still has to
// move.
func spread(dst, src []byte, slots *levels.Slots, w int) {
	left := slots.Present
	for end := slots.Count; end > 0; {
		n := (end-1)%64 + 1
		end -= n
		word := slots.Word(end) & (1<<n - 1)
		count := bits.OnesCount64(word)
		to, values := dst[end*w:(end+n)*w], src[:left*w]
		left -= count
		size := w
		if nulls := n - count; nulls <= 3 || count == 0 || n < 64 || len(values) < 64*w {
			size = 0 // long runs, or too few slots for spreadWord
		}
		switch size {
		case 1:
			spreadWord[uint8](to, values, word)
		case 2:
			spreadWord[uint16](to, values, word)
		case 4:
			spreadWord[uint32](to, values, word)
		case 8:
			spreadWord[uint64](to, values, word)
		default:
			spreadRuns(to, values, word, n, w)
		}
	}
}

// spreadWord sets dst to 64 slots from the last values of src. No branch depends on a bit
// of word, because it would be guessed wrong.
func spreadWord[T uint8 | uint16 | uint32 | uint64](dst, src []byte, word uint64) {
	var last [64]T // src may be no address for T
	size := unsafe.Sizeof(last)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&last)), size), src[uintptr(len(src))-size:])
	to := (*[64]T)(unsafe.Pointer(&dst[:size][0]))
	i := uint(63)
	for k := uint(63); k < 64; k-- {
		bit := word >> k & 1
		to[k] = last[i&63] & -T(bit)
		i -= uint(bit)
	}
}

// spreadRuns sets dst to n slots of w bytes from the last values of src. It copies all values
// between two nulls at once.
func spreadRuns(dst, src []byte, word uint64, n, w int) {
	for word <<= 64 - n; n > 0; {
		run := min(bits.LeadingZeros64(^word), n)
		copied := copy(dst[(n-run)*w:n*w], src[len(src)-run*w:])
		src, n, word = src[:len(src)-copied], n-run, word<<run
		gap := min(bits.LeadingZeros64(word), n)
		clear(dst[(n-gap)*w : n*w])
		n, word = n-gap, word<<gap
	}
}

// spreadEnds moves the ends of values, which follow the end of the value before the page, to
// their slots. A null ends where the value before it does.
func spreadEnds(ends []int64, slots *levels.Slots) {
	left := slots.Present
	for end := slots.Count; end > 0; {
		n := (end-1)%64 + 1
		word := slots.Word(end - n)
		for k := n - 1; k >= 0; k-- {
			ends[end] = ends[left]
			left -= int(word >> k & 1)
			end--
		}
	}
}
