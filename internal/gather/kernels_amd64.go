package gather

// prefetch asks the processor to load the cache lines of some bytes, or of one byte.
// It does not wait for them, and any address is legal.
//
//go:noescape
func prefetch(from uintptr, bytes int)

// streamLines copies lines of 64 bytes with stores that bypass the cache. Dst is
// aligned to a line.
//
//go:noescape
func streamLines(dst, src *byte, lines int)

// endStream makes the stores of streamLines visible to other processors.
func endStream()
