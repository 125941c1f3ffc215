package gather

import "unsafe"

// copier is one pass. From every row it takes count runs of run elements. The
// first begins src source units after the row's address, and the runs lie stride
// units apart. They go to dst without gaps, one row every width bytes.
type copier struct {
	rows               []uintptr
	src                uintptr
	dst                []byte
	width              int
	run, count, stride int
}

// While a row is copied, the first leadBytes of a later row are prefetched: at most
// aheadRows later, and about reach bytes later if rows are long. The processor itself
// foresees the lines after them.
const (
	reach     = 12 << 10
	aheadRows = 16
	leadBytes = 2 << 10
)

// copy copies bytes. Its rows are the first of list.
func (c copier) copy(list []uintptr, streaming bool) {
	if c.count == 1 && c.run >= 64 && c.run < streamRun {
		c.copyMedium(list)
		return
	}
	ahead := max(1, min(reach/(c.run*c.count), aheadRows))
	last, extent := len(list)-1, (c.count-1)*c.stride+c.run
	lead := min(extent, leadBytes)
	for i, row := range c.rows {
		prefetch(list[min(i+ahead, last)]+c.src, lead)
		switch dst := c.dst[i*c.width:]; {
		case c.count > 1:
			c.copyRuns(dst, row+c.src)
		case streaming && c.run >= streamRun:
			stream(dst[:c.run], view[byte](row+c.src, c.run))
		default:
			copy(dst[:c.run], view[byte](row+c.src, c.run))
		}
	}
	if streaming {
		endStream()
	}
}

// copyMedium copies single runs of 64 to streamRun bytes, one cache line at a time,
// each after the prefetch of a later line. Prefetches of several lines at once would
// fill the processor's miss buffers, and the copies would wait.
func (c copier) copyMedium(list []uintptr) {
	for from, n := 0, 0; from < len(c.rows); from += n {
		ahead := aheadRows
		n = min(callBytes/c.run, len(c.rows)-from)
		if later := len(list) - from - ahead; later > 0 {
			n = min(n, later)
		} else {
			ahead = 0
		}
		copyRows(&c.dst[from*c.width], &list[from], n, c.src, c.run, c.width, ahead)
	}
}

const (
	// streamRun is the shortest run that is streamed: too much of a shorter one
	// is not in whole cache lines.
	streamRun = 2048

	// callBytes bounds a call of assembly, which cannot be preempted, so that a
	// garbage collection does not wait for it.
	callBytes = 256 << 10
)

// stream copies whole cache lines past the cache, and the ends of a run through it.
func stream(dst, src []byte) {
	n := copy(dst[:-int(uintptr(unsafe.Pointer(&dst[0])))&63], src)
	for dst, src = dst[n:], src[n:]; len(dst) >= 64; dst, src = dst[n:], src[n:] {
		n = min(len(dst), callBytes) &^ 63
		streamLines(&dst[0], &src[0], n/64)
	}
	copy(dst, src)
}

// copyRuns copies the runs of one row.
func (c copier) copyRuns(dst []byte, row uintptr) {
	switch {
	case c.run > 256:
		for k := range c.count {
			copy(dst[k*c.run:(k+1)*c.run], view[byte](row+uintptr(k*c.stride), c.run))
		}
	case c.run >= 16:
		copyShort[[16]byte](c, dst, row)
	case c.run >= 8:
		copyShort[uint64](c, dst, row)
	case c.run >= 4:
		copyShort[uint32](c, dst, row)
	case c.run >= 2:
		copyShort[uint16](c, dst, row)
	default:
		copyShort[uint8](c, dst, row)
	}
}

// copyShort copies runs as Ts, because a call of memmove for each takes longer. The last T
// of a run overlaps the one before unless the run is a multiple of a T.
func copyShort[T uint8 | uint16 | uint32 | uint64 | [16]byte](c copier, dst []byte, row uintptr) {
	from, to := unsafe.Pointer(&view[byte](row, c.run)[0]), unsafe.Pointer(&dst[:c.count*c.run][0])
	size := int(unsafe.Sizeof(*(*T)(to)))
	last := c.run - size
	if last == 0 {
		for k, elements := 0, unsafe.Slice((*T)(to), c.count); k < len(elements); k++ {
			elements[k] = *(*T)(unsafe.Add(from, k*c.stride))
		}
		return
	}
	for k := range c.count {
		from, to := unsafe.Add(from, k*c.stride), unsafe.Add(to, k*c.run)
		for at := 0; at < last; at += size {
			*(*T)(unsafe.Add(to, at)) = *(*T)(unsafe.Add(from, at))
		}
		*(*T)(unsafe.Add(to, last)) = *(*T)(unsafe.Add(from, last))
	}
}

// view returns the n elements at an address outside Go's stacks. A direct conversion
// would fail go vet. The conversion is safe: the memory belongs to a mapping or to C,
// or the caller keeps it alive.
func view[T any](address uintptr, n int) []T {
	return unsafe.Slice(*(**T)(unsafe.Pointer(&address)), n)
}
