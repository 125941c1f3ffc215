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

// Evidence is the number of rows that were counted, each once per part, and the
// sum of their hashes.
type Evidence struct {
	Rows   int64
	Digest Digest
}

// Plus returns the evidence of both sets of rows.
func (t Evidence) Plus(o Evidence) Evidence {
	t.Rows += o.Rows
	t.add(o.Digest.High, o.Digest.Low)
	return t
}

func (t *Evidence) add(high, low uint64) {
	var carry uint64
	t.Digest.Low, carry = bits.Add64(t.Digest.Low, low, 0)
	t.Digest.High, _ = bits.Add64(t.Digest.High, high, carry)
}

// Weight is the factor of the hashes of rows. Every part of a row has its own
// weight, so a part that comes twice does not replace a missing one. Weights of
// several parts add up.
type Weight struct {
	Parts     int64
	high, low uint64
}

// WeightOf returns the weight of a part, by its number from 0. It is odd, and that
// of the first part is 1.
func WeightOf(part int64) Weight {
	if part == 0 {
		return Weight{1, 0, 1}
	}
	return Weight{1, permutation.Hash(usePart, 0, uint64(part)), permutation.Hash(usePart, 1, uint64(part)) | 1}
}

// usePart separates these hashes from others.
const usePart = 0x70617274

// Plus returns the weight of both.
func (w Weight) Plus(o Weight) Weight {
	var carry uint64
	w.low, carry = bits.Add64(w.low, o.low, 0)
	w.high, _ = bits.Add64(w.high, o.high, carry)
	w.Parts += o.Parts
	return w
}

// Minus returns the weight without another one.
func (w Weight) Minus(o Weight) Weight {
	var borrow uint64
	w.low, borrow = bits.Sub64(w.low, o.low, 0)
	w.high, _ = bits.Sub64(w.high, o.high, borrow)
	w.Parts -= o.Parts
	return w
}

// Times returns the evidence of the rows in all parts of a weight.
func (t Evidence) Times(w Weight) Evidence {
	high, low := bits.Mul64(t.Digest.Low, w.low)
	return Evidence{Rows: t.Rows * w.Parts, Digest: Digest{high + t.Digest.High*w.low + t.Digest.Low*w.high, low}}
}

// Epoch is the part of the hash that depends on the epoch. Make it once for many
// rows.
type Epoch struct{ high, low uint64 }

// useCertificate separates these hashes from those of orders.
const useCertificate = 0x63657274

// EpochOf returns the part of an epoch.
func EpochOf(epoch int64) Epoch {
	return Epoch{permutation.Hash(useCertificate, 0, uint64(epoch)), permutation.Hash(useCertificate, 1, uint64(epoch))}
}

// Count adds the rows from a position on, given by their records. A negative
// record is padding and does not count.
//
// The hash is frozen, because certificates are kept beside checkpoints. Each half
// mixes a key of the epoch, multiples of the position and the record. The halves
// combine them differently, so rows with one equal half differ in the other. All
// steps are bijections of the record, so different records at a position have
// different hashes.
func (e Epoch) Count(t *Evidence, position int64, records []int64) {
	sum := *t
	high, low := e.high+uint64(position)*stepHigh, e.low+uint64(position)*stepLow
	for _, record := range records {
		if record >= 0 {
			sum.Rows++
			sum.add(permutation.Mix(high^uint64(record)), permutation.Mix(low+uint64(record)*stepRecord))
		}
		high += stepHigh
		low += stepLow
	}
	*t = sum
}

// Odd multipliers without a pattern: the golden ratio, one by Steele and Vigna
// (Computationally Easy, Spectrally Good Multipliers for Congruential
// Pseudorandom Number Generators, 2021), and one of wyhash's.
const (
	stepHigh   = 0x9e3779b97f4a7c15
	stepLow    = 0xd1342543de82ef95
	stepRecord = 0xa0761d6478bd642f
)
