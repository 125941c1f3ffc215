package gather

import (
	"runtime"
	"unsafe"
)

// Span is a run of adjacent elements, and the place of the converted ones. Runs have any lengths, where
// the rows of a [Program] have one.
type Span struct{ Dst, Src []byte }

// Copy copies spans one after the other. Dst has the size of the converted elements. The error is a
// *RangeError whose row is the number of the span. A Src must not be on a goroutine's stack. [Bits] is
// not supported, because Src has bytes.
func (c Conversion) Copy(spans []Span) error {
	next, ahead := 0, 0 // the first span that is not prefetched; bytes that are, and are not copied
	for i := range spans {
		for ; next < len(spans) && next <= i+aheadRows && ahead < reach; next++ {
			if src := spans[next].Src; len(src) > 0 {
				prefetch(uintptr(unsafe.Pointer(&src[0])), min(len(src), leadBytes))
				ahead += len(src)
			}
		}
		ahead -= len(spans[i].Src)
		if err := c.one(spans[i], i); err != nil {
			return err
		}
	}
	return nil
}

// one copies span number i.
func (c Conversion) one(s Span, i int) error {
	if c == Copy || len(s.Src) == 0 {
		copy(s.Dst, s.Src)
		return nil
	}
	_, unit := c.units()
	row := [1]uintptr{uintptr(unsafe.Pointer(&s.Src[0]))}
	err := copier{rows: row[:], dst: s.Dst, width: len(s.Dst), run: len(s.Dst) / unit, count: 1}.convert(c, i)
	runtime.KeepAlive(s.Src)
	return err
}

// Prefetch asks the processor to load the cache line of an address, which need not be legal.
func Prefetch(at uintptr) { prefetch(at, 1) }
