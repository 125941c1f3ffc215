// Command gather is a C library for the benchmark. It gathers on the caller's thread, as
// np.take does. A loader gathers on another thread. It must be woken, may be interrupted,
// and its core may have been idle.
//
//	go build -buildmode=c-shared -o gather.so ./tests/bench/gather
package main

// #include <stdint.h>
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
)

var gatherers []source.Gatherer

// bench_open returns a handle for rows of int32, which still belong to the
// caller, or -1 if they cannot be gathered.
//
//export bench_open
func bench_open(data unsafe.Pointer, elements, row C.int64_t) C.int64_t {
	src, err := arrowio.FromSlices(arrowio.Slice("x", unsafe.Slice((*int32)(data), elements), int(row)))
	if err != nil {
		return -1
	}
	g, err := src.Gatherer([]source.Part{{Boxes: [][][2]int{{{0, int(row)}}}}})
	if err != nil {
		return -1
	}
	gatherers = append(gatherers, g)
	return C.int64_t(len(gatherers) - 1)
}

// bench_gather copies rows to dst and returns the nanoseconds without the entry
// into Go, or -1 for an error.
//
//export bench_gather
func bench_gather(number C.int64_t, records unsafe.Pointer, rows C.int64_t, dst unsafe.Pointer, bytes C.int64_t) C.int64_t {
	list, to := unsafe.Slice((*int64)(records), rows), unsafe.Slice((*byte)(dst), bytes)
	start := time.Now()
	if err := gatherers[number].Gather(context.Background(), source.Draw{}, list, []source.Job{{Rows: [2]int{0, int(rows)}, Dst: to}}); err != nil {
		return -1
	}
	return C.int64_t(time.Since(start))
}

func main() {}
