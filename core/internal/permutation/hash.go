package permutation

// Hash returns a 64-bit hash of a list of words. Every step is a bijection, so two
// lists that differ only in the last word have different hashes. The function is
// frozen, because orders and the keys of records depend on it.
func Hash(words ...uint64) uint64 {
	h := uint64(0)
	for _, w := range words {
		h = Mix((h ^ w) + gamma)
	}
	return h
}

// gamma is the odd integer nearest to 2^64 divided by the golden ratio. It is the
// increment of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014). Here it is added because Mix maps 0 to 0.
const gamma = 0x9e3779b97f4a7c15

// Mix is the 64-bit finalizer of SplitMix64: David Stafford's variant 13 of
// MurmurHash3's (Better Bit Mixing, 2011). It is a bijection, and flipping one
// bit of its argument flips every bit of its value with probability near 1/2.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
