package gather

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasKernels reports whether this processor runs the assembly kernels.
func hasKernels() bool { return cpu.X86.HasAVX2 }

// A row with a single run of more than shortRun bytes is copied by copyLong. Runs
// from streamRun on may be streamed: too much of a shorter run is not in whole
// cache lines.
const (
	shortRun  = 128
	streamRun = 2048
)

// native does a pass with the assembly kernels. Its rows are the first of all;
// the rest of all is prefetched.
func (c copier) native(streaming bool, all []uintptr) {
	if c.run*c.count > callBytes {
		a, b := c.halves()
		a.native(streaming, all)
		b.native(streaming, all)
		return
	}
	long := c.count == 1 && c.run > shortRun
	b := newBurst(&c, long)
	rows := min(callRows, callBytes/(c.run*c.count))
	for from := 0; from < len(c.rows); from += rows {
		b.rows = &c.rows[from]
		b.dst = unsafe.Pointer(&c.dst[from*c.width])
		b.n = min(rows, len(c.rows)-from)
		if long {
			b.end = &all[len(all)-1]
			copyLong(&b, streaming && c.run >= streamRun)
		} else {
			b.ahead = max(0, len(all)-from-b.distance)
			copyShort(&b)
		}
	}
}

// halves divides the part of every row in two.
func (c copier) halves() (a, b copier) {
	a, b = c, c
	if c.count > 1 {
		a.count /= 2
		b.count -= a.count
		b.src += uintptr(a.count * c.stride)
		b.dst = c.dst[a.count*c.run:]
		return a, b
	}
	a.run = c.run / 2 &^ 63
	b.run -= a.run
	b.src += uintptr(a.run)
	b.dst = c.dst[a.run:]
	return a, b
}

// burst is one call of a kernel: n rows, from each count runs of run bytes.
type burst struct {
	dst    unsafe.Pointer
	width  int // bytes from row to row in dst
	rows   *uintptr
	n      int
	src    uintptr // of the first run, from the row's address
	run    int
	count  int
	stride int

	// With each of the first ahead rows, copyShort prefetches the row distance
	// rows later: lines addresses that lie step bytes apart, and the last byte.
	ahead, distance   int
	lines, step, last int

	// While copyLong copies a row, it prefetches the last left steps of the row
	// near rows later, from offset on, then steps of the row after that. Near
	// the end both are the last row.
	near, left, offset int
	end                *uintptr
}

// newBurst plans the prefetches. Those of copyLong are 8 KB ahead: about that much
// is copied until memory answers.
func newBurst(c *copier, long bool) burst {
	b := burst{width: c.width, src: c.src, run: c.run, count: c.count, stride: c.stride, step: 64}
	if long {
		const reach = 8192 / 128
		steps := (c.run + 127) / 128
		b.near, b.offset, b.left = reach/steps, reach%steps*128, steps-reach%steps
		return b
	}
	extent := (c.count-1)*c.stride + c.run
	switch {
	case c.stride >= 128, c.stride < 0:
		b.step, b.lines = c.stride, min(c.count, 64)
	default:
		b.lines = min((extent+63)/64, 64)
	}
	b.last = max(0, min((b.lines-1)*b.step+63, extent-1))
	b.distance = max(8, min(24, 64/b.lines))
	return b
}

//go:noescape
func copyShort(b *burst)

// copyLong copies one run of more than shortRun bytes from each row, which may
// be streamed only from 192 bytes on.
//
//go:noescape
func copyLong(b *burst, streaming bool)
