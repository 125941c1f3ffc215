// Package sha256 is SHA-256 for identities: of documents, of metadata. It is
// crypto/sha256, but under the build tag guest the function in block.go: to the
// wasm guest crypto/sha256 would bring the whole FIPS module with its
// self-tests, 0.15 MB that everybody who opens the page would download, and no
// instructions that make it faster. Tests hold the two equal.
package sha256

import "encoding/binary"

// Size is the number of bytes of a sum.
const Size = 32

// chunk is the number of bytes that the compression function takes at a time.
const chunk = 64

// portable hashes by the function in block.go. The zero value is no hash: see
// newPortable.
type portable struct {
	state  [8]uint32
	rest   [chunk]byte // bytes that do not fill a chunk yet
	n      int         // of rest
	length uint64      // of all bytes written
}

func newPortable() *portable { return &portable{state: initial} }

// Write adds bytes to what is hashed. It never fails.
func (h *portable) Write(p []byte) (int, error) {
	n := len(p)
	h.length += uint64(n)
	if h.n > 0 {
		k := copy(h.rest[h.n:], p)
		h.n, p = h.n+k, p[k:]
		if h.n < chunk {
			return n, nil
		}
		compress(&h.state, h.rest[:])
	}
	for ; len(p) >= chunk; p = p[chunk:] {
		compress(&h.state, p)
	}
	h.n = copy(h.rest[:], p)
	return n, nil
}

// Sum appends the sum of the bytes written so far. More may be written after.
func (h *portable) Sum(b []byte) []byte {
	d := *h
	bits := d.length * 8
	pad := [chunk + 8]byte{0x80}
	zeros := (chunk + 56 - 1 - d.n) % chunk
	binary.BigEndian.PutUint64(pad[1+zeros:], bits)
	_, _ = d.Write(pad[:1+zeros+8])
	for _, word := range d.state {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

func sumPortable(data []byte) (sum [Size]byte) {
	h := newPortable()
	_, _ = h.Write(data)
	h.Sum(sum[:0])
	return sum
}
