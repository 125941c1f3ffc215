package gather

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasKernels reports whether this processor runs the assembly kernels.
func hasKernels() bool { return cpu.X86.HasAVX2 }

// longRun is the length from which rows are copied in lock-step. Shorter ones
// go one after the other, with prefetches, which then cover enough of a row.
const longRun = 2112

// native does a pass with the assembly kernels. Its rows are the first of all,
// whose further addresses are worth a prefetch.
func (c copier) native(steps *lockstep, all []uintptr) {
	if c.run >= longRun {
		for i, row := range c.rows {
			for k := range c.count {
				steps.add(row+c.src+uintptr(k*c.stride), unsafe.Pointer(&c.dst[i*c.width+k*c.run]), c.run)
			}
		}
		return
	}
	b := newBurst(&c)
	rows := max(1, min(callRows, callBytes/(c.run*c.count)))
	for from := 0; from < len(c.rows); from += rows {
		b.rows = &c.rows[from]
		b.dst = unsafe.Pointer(&c.dst[from*c.width])
		b.n = min(rows, len(c.rows)-from)
		b.ahead = max(0, len(all)-from-b.distance)
		copyShort(&b)
	}
}

// burst is one call of copyShort: n rows, from each count runs of run bytes.
type burst struct {
	dst    unsafe.Pointer
	width  int // bytes from row to row in dst
	rows   *uintptr
	n      int
	src    uintptr // of the first run, from the row's address
	run    int     // 1 to longRun-1
	count  int
	stride int

	// For the first ahead rows, the row distance rows further on is
	// prefetched: lines addresses step bytes apart, and the last byte.
	ahead, distance   int
	lines, step, last int
}

func newBurst(c *copier) burst {
	b := burst{width: c.width, src: c.src, run: c.run, count: c.count, stride: c.stride, step: 64}
	extent := (c.count-1)*c.stride + c.run
	switch {
	case c.stride >= 128, c.stride < 0:
		b.step, b.lines = c.stride, min(c.count, 64)
	case extent < 512:
		b.lines = (extent + 63) / 64
	case c.count > 1:
		b.lines = min((extent+63)/64, 64)
	default:
		b.lines = 4 // the processor sees the pattern and goes on by itself
	}
	b.last = max(0, min((b.lines-1)*b.step+63, extent-1))
	b.distance = max(8, min(24, 64/b.lines))
	return b
}

// lockstep collects pairs of addresses and copies them four at a time, also
// across the borders of jobs.
type lockstep struct {
	streaming bool
	run, n    int
	pairs     [32 + lanes]pair
}

const lanes = 4

type pair struct {
	src uintptr
	dst unsafe.Pointer
}

func (l *lockstep) add(src uintptr, dst unsafe.Pointer, run int) {
	if run != l.run {
		l.flush()
		l.run = run
	}
	if l.n == len(l.pairs) {
		l.copy(len(l.pairs)-lanes, lanes)
		l.n = copy(l.pairs[:], l.pairs[len(l.pairs)-lanes:])
	}
	l.pairs[l.n] = pair{src, dst}
	l.n++
}

// flush copies what has been collected.
func (l *lockstep) flush() {
	if l.n > 0 {
		l.copy(l.n, 0)
	}
	l.n = 0
}

// copy does the first n pairs, in calls of bounded size. The ahead pairs after
// them come next.
func (l *lockstep) copy(n, ahead int) {
	block, streaming := l.stores()
	rows := max(lanes, callBytes/l.run&^(lanes-1))
	for from := 0; from < n; from += rows {
		m := min(rows, n-from)
		for at := 0; at < l.run; {
			size, next := min(callBytes/lanes, l.run-at), 0
			if l.run-at-size < longRun {
				size, next = l.run-at, n-from-m+ahead
			}
			copyLockstep(&l.pairs[from], m, next, at, size, block, streaming)
			at += size
		}
	}
}

// stores chooses the kind of store and how many bytes of a row are copied at
// a stretch. The processor gathers streaming stores in a few line buffers,
// which rows at a distance of 4096 bytes share badly, so stretches are longer.
func (l *lockstep) stores() (block int, streaming bool) {
	switch {
	case !l.streaming:
		return 128, false
	case l.run < 4096:
		return 256, true
	default:
		return 512, true
	}
}

//go:noescape
func copyShort(b *burst)

// copyLockstep copies bytes [at, at+size) of n pairs, size at least 128, by
// blocks of a multiple of 128 bytes. It prefetches the beginnings of the ahead
// pairs behind them.
//
//go:noescape
func copyLockstep(pairs *pair, n, ahead, at, size, block int, streaming bool)
