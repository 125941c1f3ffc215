package main

import (
	"testing"

	"github.com/zeebo/xxh3"
)

// TestDigestOfPieces: a block that is hashed in pieces has the digest that it has
// as a whole.
func TestDigestOfPieces(t *testing.T) {
	block := make([]byte, 2*piece+5)
	for i := range block {
		block[i] = byte(i * i >> 3)
	}
	for _, n := range []int{0, 1, piece - 1, piece, piece + 1, 2 * piece, len(block)} {
		if got, want := digest(block[:n]), xxh3.Hash128(block[:n]).Bytes(); got != want {
			t.Errorf("%d bytes: got %x, want %x", n, got, want)
		}
	}
}
