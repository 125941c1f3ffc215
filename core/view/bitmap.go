package view

import (
	"math/bits"
	"slices"
)

const (
	blockWords = 16              // a block is 1024 bits, two cache lines
	sampled    = blockWords * 64 // every sampled-th set bit has its block in bitmap.samples
)

// bitmap finds the k-th of its set bits. Beside the bits it stores 8 bytes for each
// 1024 bits, and at most 4 more: the two-level directory of Clark, "Compact Pat
// Trees", 1996, section 2.2, with one level less.
type bitmap struct {
	words   []uint64
	before  []int64  // by block: the number of set bits in earlier blocks
	samples []uint32 // the blocks of set bits 0, sampled, 2*sampled, ...
	ones    int64
}

// newBitmap makes a bitmap of n bits. A bit is 1 if the function accepts its position.
func newBitmap(n int64, set func(at int64) bool) *bitmap {
	words := (n + 63) / 64
	b := &bitmap{words: make([]uint64, words), before: make([]int64, 0, (words+blockWords-1)/blockWords)}
	for i := range b.words {
		first, word := int64(i)*64, uint64(0)
		for k := range min(64, n-first) {
			bit := uint64(0)
			if set(first + k) {
				bit = 1 // without a branch, which bits at random would mispredict
			}
			word |= bit << k
		}
		b.words[i] = word
	}
	for from := 0; from < len(b.words); from += blockWords {
		b.before = append(b.before, b.ones)
		for _, w := range b.words[from:min(from+blockWords, len(b.words))] {
			b.ones += int64(bits.OnesCount64(w))
		}
		for int64(len(b.samples))*sampled < b.ones {
			b.samples = append(b.samples, uint32(from/blockWords))
		}
	}
	b.samples = slices.Clip(b.samples)
	return b
}

// find returns the position of the k-th set bit, counted from 0.
func (b *bitmap) find(k int64) int64 {
	block, end := int(b.samples[k/sampled]), len(b.before)
	if next := k/sampled + 1; next < int64(len(b.samples)) {
		end = int(b.samples[next]) + 1
	}
	for end-block > 1 {
		if middle := (block + end) / 2; b.before[middle] > k {
			end = middle
		} else {
			block = middle
		}
	}
	rest := int(k - b.before[block])
	for i := block * blockWords; ; i++ {
		n := bits.OnesCount64(b.words[i])
		if rest < n {
			return int64(i)*64 + int64(nth(b.words[i], rest))
		}
		rest -= n
	}
}

// count returns the number of set bits before a position.
func (b *bitmap) count(at int64) int64 {
	word := at / 64
	block := word / blockWords
	if block == int64(len(b.before)) {
		return b.ones
	}
	n := b.before[block]
	for _, w := range b.words[block*blockWords : min(word, int64(len(b.words)))] {
		n += int64(bits.OnesCount64(w))
	}
	if rest := at % 64; rest > 0 {
		n += int64(bits.OnesCount64(b.words[word] & (1<<rest - 1)))
	}
	return n
}

// nth returns the position of the n-th set bit of a word, counted from 0. It has no branch:
// a search would mispredict half of its branches. Vigna, "Broadword Implementation of
// Rank/Select Queries", 2008, section 4.
func nth(word uint64, n int) int {
	const ones, sevens = 0x0101010101010101, 0x8080808080808080
	counts := word - word>>1&0x5555555555555555
	counts = counts&0x3333333333333333 + counts>>2&0x3333333333333333
	counts = (counts + counts>>4) & 0x0f0f0f0f0f0f0f0f * ones // set bits in each byte and the bytes below it
	later := (uint64(n)*ones | sevens) - counts               // the highest bit of a byte stays if its count is at most n
	at := bits.OnesCount64(later&sevens) * 8                  // position of the byte with the bit
	n -= int(counts << 8 >> at & 0xff)
	return at + int(nthOfByte[word>>at&0xff][n&7])
}

// nthOfByte has the positions of the set bits of every byte.
var nthOfByte = func() (table [256][8]uint8) {
	for b := range table {
		n := 0
		for at := range uint8(8) {
			if b>>at&1 != 0 {
				table[b][n] = at
				n++
			}
		}
	}
	return table
}()
