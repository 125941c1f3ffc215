package main

/*
#include "internal.h"
*/
import "C"

import (
	corememory "github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/memory/document"
)

//export mfgo_memory
func mfgo_memory(json *C.mfi_text, n C.size_t, format C.int32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		written, err := formatReport("memory", text(json, n), format, document.Measure,
			formats[*corememory.Usage]{text: document.Text, json: document.Report})
		if err != nil {
			return err
		}
		return writeText(out, written)
	})
}
