//go:build wasip1

// Command guest is the layout validator as a WebAssembly module, for browsers
// and for wazero. build.sh builds it as a reactor of WASI preview 1.
//
// The host calls _initialize once, and then one export at a time:
//
//	mf_version() -> u32                       the version of these exports
//	mf_input(n u32) -> address                where the host writes n bytes
//	mf_describe(n u32) -> reply               a layout document → JSON
//	mf_table(array, what, from, count u32) -> reply   float64, little-endian
//	mf_samples(n u32) -> reply                a question about an order → JSON
//	mf_schema(n u32, size f64) -> reply       the last bytes of a file → JSON
//
// Package reply documents the replies. A reply is address<<32 | length. It is
// valid until the next call, and an address from mf_input is valid for one call.
// Memory may grow in any call, so the host must read memory.buffer again after
// each. After a trap, the host must drop the instance.
//
// The clock must be real: Go's garbage collector does not finish on a clock that
// jumps ahead at every reading.
package main

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/meshfeed/meshfeed/wasm/internal/reply"
)

const (
	heapSoft    = 64 << 20  // with a larger heap, an export collects garbage before it returns
	memoryLimit = 144 << 20 // near it, garbage is collected ever more often; hosts allow 256 MiB
	maxStack    = 16 << 20  // bounded recursion needs less than 1 MiB
	maxInput    = 16 << 20  // the largest input: the footer of a file
	keepInput   = 1 << 20   // a larger input buffer is freed after its call
)

var (
	validator reply.Validator
	input     []byte
	output    []byte // keeps the last reply alive
)

// init sets the bounds, because main does not run in a reactor.
func init() {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetMaxStack(maxStack)
}

//go:wasmexport mf_version
func version() uint32 { return reply.Version }

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
func describe(n uint32) uint64 { return send(validator.Describe(question(n))) }

//go:wasmexport mf_table
func table(array, what, from, count uint32) uint64 {
	numbers := validator.Table(array, what, from, count) // WebAssembly is little-endian
	return send(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 8*len(numbers)))
}

//go:wasmexport mf_samples
func samples(n uint32) uint64 { return send(reply.Samples(question(n))) }

//go:wasmexport mf_schema
func schema(n uint32, size float64) uint64 { return send(reply.Schema(question(n), size)) }

// question returns the first n bytes of the input.
func question(n uint32) []byte {
	output = nil
	return input[:min(int(n), cap(input))]
}

// send returns the address and the length of a reply, and keeps the reply alive. It
// collects garbage if the heap is large, so that an idle instance is small.
func send(text []byte) uint64 {
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
