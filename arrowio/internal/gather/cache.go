package gather

import "github.com/klauspost/cpuid/v2"

// OutgrowsCache reports whether a ring of destinations of that many bytes in
// total is too large for the processor's last cache, which others use too, so
// that Options.Streaming pays. It is false where the cache's size is unknown.
func OutgrowsCache(bytes int) bool {
	last := cpuid.CPU.Cache.L3
	return last > 0 && bytes > last/2
}
