package chunk

import "sync"

// scratch is the working memory of a decoder. Decoders use it one after the other, because
// the first access to new memory takes about as long as decoding into it.
type scratch struct {
	unpacked []byte // a page after decompression
	indices  []uint32
	wide     []byte // integers of a page before they are narrowed
}

// scratchKept bounds the bytes of a scratch that is kept.
const scratchKept = 32 << 20

var scratches sync.Pool // of *scratch

func takeScratch() *scratch {
	if s, ok := scratches.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

// keep makes the memory available to the next decoder.
func (s *scratch) keep() {
	if cap(s.unpacked)+4*cap(s.indices)+cap(s.wide) <= scratchKept {
		scratches.Put(s)
	}
}
