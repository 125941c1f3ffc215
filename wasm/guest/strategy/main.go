//go:build wasip1

// Command strategy is the strategy planner as a WebAssembly module, for browsers.
// build.sh builds it as a reactor of WASI preview 1. Package reactor explains how a host
// calls it. Its exports are mf_version, mf_input, and:
//
//	mf_advise(n u32) -> reply           a strategy document → JSON
//	mf_catalog() -> reply               the models and devices that documents can name → JSON
//	mf_diagram(n, width u32) -> reply   a diagram document → JSON with SVG
//
// Package advice documents the replies.
package main

import (
	"github.com/meshfeed/meshfeed/wasm/guest/internal/reactor"
	"github.com/meshfeed/meshfeed/wasm/internal/advice"
)

//go:wasmexport mf_version
func version() uint32 { return advice.Version }

//go:wasmexport mf_input
func allocate(n uint32) uint32 { return reactor.Allocate(n) }

//go:wasmexport mf_advise
func advise(n uint32) uint64 { return reactor.Send(advice.Advise(reactor.Input(n))) }

//go:wasmexport mf_catalog
func catalog() uint64 { return reactor.Send(advice.Catalog()) }

//go:wasmexport mf_diagram
func diagram(n, width uint32) uint64 {
	return reactor.Send(advice.Diagram(reactor.Input(n), int(width)))
}

func main() {}
