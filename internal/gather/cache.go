package gather

import "github.com/klauspost/cpuid/v2"

// OutgrowsCache reports whether destinations of this total size are too large
// for the processor's last-level cache, so that Options.Streaming is faster. It
// returns false if the size of the cache is unknown. Rows and other programs use
// the cache, too, so half of it is the limit. With 32 MB of cache, streaming 12 MB
// takes as long as cached stores; 24 MB take a tenth less time, 64 MB a quarter less.
// Larger caches are shared by many cores, or by virtual machines: where 480 MB are
// reported, 39 MB take a third less time. So at most 32 MB count.
func OutgrowsCache(bytes int) bool {
	last := min(cpuid.CPU.Cache.L3, 32<<20)
	return last > 0 && bytes > last/2
}
