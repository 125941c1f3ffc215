package gather

// prefetch asks the processor to load the cache lines of some bytes, or of one byte.
// It does not wait for them, and any address is legal.
//
//go:noescape
func prefetch(from uintptr, bytes int)

// copyRows copies one run of 64 bytes or more from each of n rows. While it copies
// bytes of a row, it prefetches the same bytes of the row that is ahead rows later.
//
//go:noescape
func copyRows(dst *byte, rows *uintptr, n int, src uintptr, run, width, ahead int)

// streamLines copies lines of 64 bytes with stores that bypass the cache. Dst is
// aligned to a line.
//
//go:noescape
func streamLines(dst, src *byte, lines int)

// endStream makes the stores of streamLines visible to other processors.
func endStream()
