// Package permutation gives pseudorandom permutations of 0…n-1 with random
// access: the image of any position costs the same few nanoseconds, and
// nothing that grows with n is stored.
//
// Two constructions share the work, and the size alone chooses:
//
//   - Up to [TableSize] elements, a table shuffled by Fisher and Yates's method
//     (Knuth, TAOCP 2, algorithm 3.4.2P) with numbers from a keyed hash. Every
//     permutation is equally likely as far as the hash is random, which is
//     what counts where somebody could count permutations.
//   - Above, a generalised Feistel network (Black and Rogaway, Ciphers with
//     Arbitrary Finite Domains, CT-RSA 2002, methods "generalized Feistel" and
//     "cycle walking"). An element is a pair (l, r) of a rectangle a × b with
//     a ≈ b ≈ √n; each round adds a keyed hash of one half to the other,
//     modulo a or b. The rectangle exceeds n by less than a, so fewer than one
//     element in 60 lands outside and has to go through the network again.
//
// Ten rounds: the best generic attack on r ≥ 6 Feistel rounds over halves of h
// bits needs about 2^((r-4)h) images (Patarin, Generic Attacks on Feistel
// Schemes, ASIACRYPT 2001). At the smallest rectangle, h = 6, that is 2^36
// images or 2^24 complete epochs; with more elements it grows with n^3.
//
// Both are frozen: the same key and size give the same permutation in every
// later release, because saved states name an order and not its records.
package permutation

import "fmt"

// TableSize is the largest size for which the permutation is a table.
const TableSize = 4096

// MaxSize is the largest size: halves of at most 21 bits.
const MaxSize = 1 << 40

// Permutation is a bijection on 0…Len-1. It is immutable and safe for
// concurrent use.
type Permutation interface {
	Len() int64
	// At gives the image of a position in 0…Len-1. It panics outside, as a
	// slice does.
	At(position int64) int64
	// Fill sets dst[i] to At(position+i).
	Fill(dst []int64, position int64)
}

// New gives the permutation of 0…n-1 that belongs to a key, a list of words of
// any length. Different keys give unrelated permutations, and so do different
// sizes under one key. It panics if n is negative or above MaxSize.
func New(n int64, key ...uint64) Permutation {
	if n < 0 || n > MaxSize {
		panic(fmt.Sprintf("permutation: size %d is not in [0, 2^40]", n))
	}
	k := subkey(n, key)
	if n <= TableSize {
		return newTable(n, k)
	}
	return newFeistel(n, k)
}

// subkey is what both constructions hash, after a number of their own, into
// round keys and draws: 128 bits, so that no two of billions of orders agree by
// chance.
func subkey(n int64, key []uint64) (k [2]uint64) {
	for i := range k {
		words := append([]uint64{uint64(i), uint64(n)}, key...)
		k[i] = Hash(words...)
	}
	return k
}

// check panics unless positions [position, position+count) lie in [0, n).
func check(position, count, n int64) {
	if position < 0 || position > n-count {
		panic(fmt.Sprintf("permutation: positions [%d, %d) are not in [0, %d)", position, position+count, n))
	}
}
