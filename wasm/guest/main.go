//go:build wasip1

// Command guest is the layout validator as a WebAssembly module: the layout
// core behind a few exports, for the browser and for wazero. build.sh builds
// it as a reactor of WASI preview 1.
//
// The host calls _initialize once, then one export at a time:
//
//	mf_version() -> u32                       of these exports
//	mf_input(n u32) -> address                where the host writes n bytes
//	mf_describe(n u32) -> reply               a layout document → JSON
//	mf_table(array, what, from, count u32) -> reply   float64, little-endian
//	mf_samples(n u32) -> reply                a question about an order → JSON
//	mf_schema(n u32, size f64) -> reply       the last bytes of a file → JSON
//
// Package answer says what is in them. A reply is address<<32 | length, and
// lies there until the next call; an address from mf_input is good for one
// call. Memory may grow in any call, so the host reads memory.buffer anew. A
// trap is final: the host drops the instance.
//
// The clock must be a real one: Go's collector starves on one that jumps ahead
// at every reading.
package main

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/meshfeed/meshfeed/wasm/internal/answer"
)

const (
	heapSoft    = 64 << 20  // above, an export collects garbage before it returns
	memoryLimit = 192 << 20 // above, the collector runs all the time; hosts allow 256 MiB
	maxStack    = 16 << 20  // the core's recursion is bounded, and takes less than 1 MiB
	maxInput    = 16 << 20  // the largest question: the footer of a file
	keepInput   = 1 << 20   // larger input is let go after its call
)

var (
	validator answer.Validator
	input     []byte
	output    []byte // keeps the last reply alive
)

// An instance has no main that runs, so its bounds are set as it starts.
func init() {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetMaxStack(maxStack)
}

//go:wasmexport mf_version
func version() uint32 { return answer.Version }

//go:wasmexport mf_input
func allocate(n uint32) uint32 {
	if n > maxInput {
		return 0
	}
	if int(n) > cap(input) {
		input = make([]byte, max(n, 1<<10))
	}
	return address(input[:cap(input)])
}

//go:wasmexport mf_describe
func describe(n uint32) uint64 { return reply(validator.Describe(question(n))) }

//go:wasmexport mf_table
func table(array, what, from, count uint32) uint64 {
	numbers := validator.Table(array, what, from, count) // in memory as they are answered
	return reply(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 8*len(numbers)))
}

//go:wasmexport mf_samples
func samples(n uint32) uint64 { return reply(answer.Samples(question(n))) }

//go:wasmexport mf_schema
func schema(n uint32, size float64) uint64 { return reply(answer.Schema(question(n), size)) }

// question gives the first n bytes of the input.
func question(n uint32) []byte {
	output = nil
	return input[:min(int(n), cap(input))]
}

// reply keeps the bytes for the host, and collects garbage where there may be
// much: while nothing is asked, an instance should be small.
func reply(text []byte) uint64 {
	output = text
	if cap(input) > keepInput {
		input = nil
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > heapSoft {
		runtime.GC()
	}
	return uint64(address(text))<<32 | uint64(len(text))
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func main() {}
