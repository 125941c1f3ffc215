package main

/*
#include "internal.h"
*/
import "C"

import (
	corememory "github.com/meshfeed/meshfeed/core/memory"
	"github.com/meshfeed/meshfeed/core/memory/document"
	"github.com/meshfeed/meshfeed/core/status"
)

//export mfgo_memory
func mfgo_memory(json *C.mfi_text, n C.size_t, format C.int32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		report, err := measure(text(json, n), format)
		if err != nil {
			return err
		}
		return writeText(out, report)
	})
}

// measure reports on a memory document in one of the formats.
func measure(model []byte, format C.int32_t) ([]byte, error) {
	write := map[C.int32_t]func(*corememory.Usage) []byte{
		C.MF_TEXT: func(u *corememory.Usage) []byte { return []byte(document.Text(u)) },
		C.MF_JSON: document.Report,
		C.MF_HTML: func(u *corememory.Usage) []byte { return []byte(document.HTML(u)) },
	}[format]
	if write == nil {
		return nil, status.Errorf(status.InvalidArgument, "memory", "format is %d, but must be MF_TEXT, MF_JSON or MF_HTML", int(format))
	}
	u, err := document.Measure(model)
	if err != nil {
		return nil, err
	}
	return write(u), nil
}
