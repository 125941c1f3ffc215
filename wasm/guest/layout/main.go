//go:build wasip1

// Command layout is the layout validator as a WebAssembly module, for browsers
// and for wazero. build.sh builds it as a reactor of WASI preview 1. Package
// reactor explains how a host calls it. Its exports are mf_version, mf_input, and:
//
//	mf_describe(n u32) -> reply               a layout document → JSON
//	mf_table(array, what, from, count u32) -> reply   float64, little-endian
//	mf_samples(n u32) -> reply                a question about an order → JSON
//	mf_schema(n u32, size f64) -> reply       the last bytes of a file → JSON
//
// Package reply documents the replies.
package main

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/wasm/guest/internal/reactor"
	"github.com/meshfeed/meshfeed/wasm/internal/reply"
)

var validator reply.Validator

//go:wasmexport mf_version
func version() uint32 { return reply.Version }

//go:wasmexport mf_input
func allocate(n uint32) uint32 { return reactor.Allocate(n) }

//go:wasmexport mf_describe
func describe(n uint32) uint64 { return reactor.Send(validator.Describe(reactor.Input(n))) }

//go:wasmexport mf_table
func table(array, what, from, count uint32) uint64 {
	numbers := validator.Table(array, what, from, count) // WebAssembly is little-endian
	return reactor.Send(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 8*len(numbers)))
}

//go:wasmexport mf_samples
func samples(n uint32) uint64 { return reactor.Send(reply.Samples(reactor.Input(n))) }

//go:wasmexport mf_schema
func schema(n uint32, size float64) uint64 { return reactor.Send(reply.Schema(reactor.Input(n), size)) }

func main() {}
