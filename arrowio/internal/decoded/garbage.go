package decoded

import (
	"runtime"
	"runtime/metrics"
)

// maxGarbage bounds the memory that is allocated between two garbage collections, while columns
// are decoded. It may also be a quarter of what the program keeps, if that is more.
const maxGarbage = 256 << 20

// collect collects garbage before bytes are allocated, if with them much would have been allocated
// since the last collection. Go itself begins a collection when the heap has doubled. So the
// results that no gather uses any more would double the memory of the process.
func collect(bytes int64) {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	live, now := heap[0].Value.Uint64(), heap[1].Value.Uint64()
	if now+uint64(bytes) > live+max(maxGarbage, live/4) {
		runtime.GC()
	}
}
