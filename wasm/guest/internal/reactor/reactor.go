//go:build wasip1

// Package reactor passes inputs and replies between a host and a WebAssembly module
// that the host calls, a reactor. A module has these exports, and more:
//
//	mf_version() -> u32         the version of its exports
//	mf_input(n u32) -> address  where the host writes n bytes
//
// The host calls _initialize once, and then one export at a time. A reply is
// address<<32 | length. It is valid until the next call, and an address from
// mf_input is valid for one call. Memory may grow in any call, so the host must read
// memory.buffer again after each. After a trap, the host must drop the instance.
//
// The clock must be real: Go's garbage collector does not finish on a clock that
// jumps ahead at every reading.
package reactor

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

const (
	heapSoft    = 64 << 20  // with a larger heap, Send collects garbage before it returns
	memoryLimit = 144 << 20 // near it, garbage is collected ever more often; hosts allow 384 MiB
	maxStack    = 16 << 20  // bounded recursion needs less than 1 MiB
	maxInput    = 16 << 20  // the largest input: the footer of a file
	keepInput   = 1 << 20   // a larger input buffer is freed after its call
)

var (
	input  []byte
	output []byte // keeps the last reply alive
)

// init sets the bounds, because main does not run in a reactor.
func init() {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetMaxStack(maxStack)
}

// Allocate returns the address of n bytes for an input, or 0 if n is too large.
func Allocate(n uint32) uint32 {
	if n > maxInput {
		return 0
	}
	if input == nil || int(n) > cap(input) { // an address of 0 would be a refusal
		input = make([]byte, max(n, 1<<10))
	}
	return address(input[:cap(input)])
}

// Input returns the first n bytes of the input.
func Input(n uint32) []byte {
	output = nil
	return input[:min(int(n), cap(input))]
}

// Send returns the address and the length of a reply, and keeps the reply alive. It
// collects garbage if the heap is large, so that an idle instance is small.
func Send(reply []byte) uint64 {
	output = reply
	if cap(input) > keepInput {
		input = nil
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > heapSoft {
		runtime.GC()
	}
	return uint64(address(reply))<<32 | uint64(len(reply))
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
