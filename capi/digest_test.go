package main

import (
	"testing"

	"github.com/zeebo/xxh3"
)

// TestDigestOfPieces: a block that is hashed in pieces has the same digest as one
// that is hashed at once.
func TestDigestOfPieces(t *testing.T) {
	block := make([]byte, 2*maxPiece+5)
	for i := range block {
		block[i] = byte(i * i >> 3)
	}
	for _, n := range []int{0, 1, maxPiece - 1, maxPiece, maxPiece + 1, 2 * maxPiece, len(block)} {
		if got, want := digest(block[:n]), xxh3.Hash128(block[:n]).Bytes(); got != want {
			t.Errorf("%d bytes: got %x, want %x", n, got, want)
		}
	}
}
