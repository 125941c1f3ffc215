package certificate

import (
	"fmt"
	"math/bits"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// Digest is a sum of hashes modulo 2^128.
type Digest struct{ High, Low uint64 }

// String returns 32 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.High, d.Low) }

func (d Digest) plus(o Digest) Digest {
	low, carry := bits.Add64(d.Low, o.Low, 0)
	return Digest{d.High + o.High + carry, low}
}

func (d Digest) minus(o Digest) Digest {
	low, borrow := bits.Sub64(d.Low, o.Low, 0)
	return Digest{d.High - o.High - borrow, low}
}

func (d Digest) times(o Digest) Digest {
	high, low := bits.Mul64(d.Low, o.Low)
	return Digest{high + d.High*o.Low + d.Low*o.High, low}
}

// hashOf hashes a number for one use. The hash of the same number for another use is
// different.
func hashOf(use uint64, number int64) Digest {
	return Digest{permutation.Hash(use, 0, uint64(number)), permutation.Hash(use, 1, uint64(number))}
}

// The uses of hashOf. The orders of package sampler pass other numbers to the same
// hash function.
const (
	useEpoch = 0x63657274
	usePart  = 0x70617274
)

// Evidence is the number of rows that were counted, and the sum of their hashes. A row
// counts once for each of its parts: the distinct blocks that hold some of it.
type Evidence struct {
	Rows   int64
	Digest Digest
}

// Plus returns the evidence of both sets of rows.
func (e Evidence) Plus(o Evidence) Evidence {
	return Evidence{e.Rows + o.Rows, e.Digest.plus(o.Digest)}
}

// Times returns the evidence of the same rows with all parts that w adds up. e must be
// the evidence of part 0.
func (e Evidence) Times(w Weight) Evidence {
	return Evidence{e.Rows * w.Parts, e.Digest.times(w.factor)}
}

// Weight is a factor for the hashes of rows. Every part of a row has its own weight, so
// the sum shows if one part came twice instead of another. Plus adds up the weights of
// several parts.
type Weight struct {
	Parts  int64
	factor Digest
}

// WeightOf returns the weight of a part, by its number from 0. Its factor is odd,
// and 1 for the first part.
func WeightOf(part int64) Weight {
	if part == 0 {
		return Weight{1, Digest{Low: 1}}
	}
	factor := hashOf(usePart, part)
	factor.Low |= 1
	return Weight{1, factor}
}

// Plus returns the weight of the parts of both.
func (w Weight) Plus(o Weight) Weight { return Weight{w.Parts + o.Parts, w.factor.plus(o.factor)} }

// Minus returns the weight without the parts of another one.
func (w Weight) Minus(o Weight) Weight { return Weight{w.Parts - o.Parts, w.factor.minus(o.factor)} }

// Epoch is the key of an epoch. The hashes of its rows are computed from it. Create it
// once for many rows.
type Epoch struct{ key Digest }

// EpochOf returns the key of an epoch.
func EpochOf(epoch int64) Epoch { return Epoch{hashOf(useEpoch, epoch)} }

// Count returns the evidence of part 0 of the rows from a position on. records are the
// record numbers of these rows. A negative number is padding and does not count.
//
// The hash must never change, because certificates are kept beside checkpoints. Each half
// mixes a key of the epoch, multiples of the position and the record. The halves
// combine them differently, so rows with one equal half differ in the other. All
// steps are bijections of the record, so different records at a position have
// different hashes.
func (e Epoch) Count(position int64, records []int64) (sum Evidence) {
	high, low := e.key.High+uint64(position)*stepHigh, e.key.Low+uint64(position)*stepLow
	for _, record := range records {
		if record >= 0 {
			sum.Rows++
			sum.Digest = sum.Digest.plus(Digest{permutation.Mix(high ^ uint64(record)), permutation.Mix(low + uint64(record)*stepRecord)})
		}
		high += stepHigh
		low += stepLow
	}
	return sum
}

// Odd multipliers without a pattern: the golden ratio, one by Steele and Vigna
// (Computationally Easy, Spectrally Good Multipliers for Congruential
// Pseudorandom Number Generators, 2021), and one of wyhash's.
const (
	stepHigh   = 0x9e3779b97f4a7c15
	stepLow    = 0xd1342543de82ef95
	stepRecord = 0xa0761d6478bd642f
)
