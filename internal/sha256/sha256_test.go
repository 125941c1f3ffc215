package sha256

import (
	"crypto/sha256"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// TestEqualsCrypto hashes texts of all lengths around the ends of chunks, in
// one piece and in random pieces.
func TestEqualsCrypto(t *testing.T) {
	r := random.New(t)
	text := make([]byte, 1000)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	for n := range 300 {
		want := sha256.Sum256(text[:n])
		if got := sumPortable(text[:n]); got != want {
			t.Fatalf("%d bytes give %x, want %x", n, got, want)
		}
		h := newPortable()
		for rest := text[:n]; len(rest) > 0; {
			k := 1 + r.IntN(len(rest))
			if wrote, err := h.Write(rest[:k]); wrote != k || err != nil {
				t.Fatalf("wrote %d of %d: %v", wrote, k, err)
			}
			h.Sum(nil) // must not change anything
			rest = rest[k:]
		}
		if got := h.Sum([]byte{1}); string(got) != "\x01"+string(want[:]) {
			t.Fatalf("%d bytes in pieces give %x, want %x", n, got[1:], want)
		}
		if got := Sum256(text[:n]); got != want {
			t.Fatalf("Sum256 gives %x, want %x", got, want)
		}
	}
}
