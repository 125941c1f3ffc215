package encoding

import (
	"encoding/binary"
	"fmt"
)

// Runs reads a sequence of numbers of up to 32 bits in the hybrid of run lengths and
// bit packing. Levels, indices of dictionaries and booleans are stored in it.
type Runs struct {
	src   []byte
	width int // bits of a number
	left  int // numbers that were not read yet
}

// Run is a part of a sequence: either Count times the number Value, or, if Packed is
// not nil, Count numbers for [Unpack]. The bytes up to the capacity of Packed may be read.
type Run struct {
	Count  int
	Value  uint32
	Packed []byte
}

// NewRuns returns the runs of n numbers of width bits.
func NewRuns(src []byte, width, n int) (Runs, error) {
	if width < 0 || width > 32 {
		return Runs{}, fmt.Errorf("numbers of %d bits instead of 0 to 32", width)
	}
	return Runs{src, width, n}, nil
}

// Width returns the number of bits of a number.
func (r *Runs) Width() int { return r.width }

// Next returns the next run, which has at least one number. It fails if the sequence
// ends before its last number.
func (r *Runs) Next() (Run, error) {
	for r.left > 0 {
		head, n := uint64(0), 1
		if len(r.src) > 0 && r.src[0] < 0x80 { // most runs are short
			head = uint64(r.src[0])
		} else if head, n = binary.Uvarint(r.src); n <= 0 {
			return Run{}, errShort
		}
		r.src = r.src[n:]
		var run Run
		var err error
		if head&1 == 1 {
			run, err = r.packed(head >> 1)
		} else {
			run, err = r.repeated(head >> 1)
		}
		if err != nil {
			return Run{}, err
		}
		if r.left -= run.Count; run.Count > 0 {
			return run, nil
		}
	}
	return Run{}, errShort
}

// repeated reads a number that occurs count times.
func (r *Runs) repeated(count uint64) (Run, error) {
	size := (r.width + 7) / 8
	if len(r.src) < size {
		return Run{}, errShort
	}
	value := uint32(0)
	for i := range size {
		value |= uint32(r.src[i]) << (8 * i)
	}
	r.src = r.src[size:]
	if r.width < 32 && value>>r.width != 0 {
		return Run{}, fmt.Errorf("the number %d has more than %d bits", value, r.width)
	}
	return Run{Count: int(min(count, uint64(r.left))), Value: value}, nil
}

// packed reads groups of 8 packed numbers. The last group of a sequence may be filled
// up, or end with the byte of the last number.
func (r *Runs) packed(groups uint64) (Run, error) {
	if r.width == 0 {
		return Run{Count: int(min(8*min(groups, 1<<40), uint64(r.left)))}, nil
	}
	count := int(min(8*min(groups, 1<<40), uint64(r.left)))
	size := int(min(uint64(r.width)*min(groups, 1<<40), uint64(len(r.src))))
	if need := (count*r.width + 7) / 8; size < need {
		return Run{}, errShort
	}
	run := Run{Count: count, Packed: r.src[:size]}
	r.src = r.src[size:]
	return run, nil
}

// Unpack sets dst to the first numbers of width bits that are packed in src, beginning
// with the lowest bits. Width is from 0 to 32, and src has at least len(dst) numbers.
func Unpack(dst []uint32, src []byte, width int) {
	if width == 0 {
		clear(dst)
		return
	}
	if width <= 28 {
		n := unpackGroups(dst, src, width)
		dst, src = dst[n:], src[n/8*width:]
	}
	mask := uint64(1)<<width - 1
	whole := 0 // numbers that have 8 bytes in src from their first byte on
	if last := (len(src) - 8) * 8; last >= 0 {
		whole = min(len(dst), last/width+1)
	}
	for i := range whole {
		bit := i * width
		dst[i] = uint32(wordAt(src, bit>>3) >> (bit & 7) & mask)
	}
	first := min(whole*width>>3, len(src)) // at most 8 bytes are left
	var rest [16]byte
	copy(rest[:], src[first:])
	for i := whole; i < len(dst); i++ {
		bit := i*width - 8*first
		dst[i] = uint32(binary.LittleEndian.Uint64(rest[bit>>3&7:]) >> (bit & 7) & mask)
	}
}

// unpackGroups unpacks groups of 8 numbers of up to 28 bits: four words hold two numbers
// each. It stops where a word would end after src, and returns how many it unpacked.
func unpackGroups(dst []uint32, src []byte, width int) (n int) {
	w, mask := width&31, uint64(1)<<width-1
	second, third, fourth := 2*width, 4*width, 6*width // first bits of the words
	for at := 0; n+8 <= len(dst) && at+fourth>>3+8 <= len(src); at += width {
		to := (*[8]uint32)(dst[n:])
		word := wordAt(src, at)
		to[0], to[1] = uint32(word&mask), uint32(word>>w&mask)
		word = wordAt(src, at+second>>3) >> (second & 7)
		to[2], to[3] = uint32(word&mask), uint32(word>>w&mask)
		word = wordAt(src, at+third>>3) >> (third & 7)
		to[4], to[5] = uint32(word&mask), uint32(word>>w&mask)
		word = wordAt(src, at+fourth>>3) >> (fourth & 7)
		to[6], to[7] = uint32(word&mask), uint32(word>>w&mask)
		n += 8
	}
	return n
}

func wordAt(src []byte, at int) uint64 { return binary.LittleEndian.Uint64(src[at : at+8]) }
