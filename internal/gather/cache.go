package gather

import "github.com/klauspost/cpuid/v2"

// OutgrowsCache reports whether destinations of that size in total are too large
// for the processor's last-level cache, so that Options.Streaming is faster. It
// returns false if the size of the cache is unknown. Rows and other programs use
// the cache, too, so half of it is the limit. Measured with 32 MB of cache, streaming
// changes nothing for 12 MB of destinations, takes a tenth less time for 24 MB,
// and a quarter less for 64 MB. Larger caches are shared by many cores, or by virtual
// machines: where 480 MB are reported, streaming takes a third less for 39 MB.
func OutgrowsCache(bytes int) bool {
	last := min(cpuid.CPU.Cache.L3, 32<<20)
	return last > 0 && bytes > last/2
}
