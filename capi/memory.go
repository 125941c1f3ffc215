package main

/*
#include "internal.h"
*/
import "C"

import (
	"github.com/meshfeed/meshfeed/core/memory/document"
	"github.com/meshfeed/meshfeed/core/status"
)

//export mfgo_memory
func mfgo_memory(json *C.mfi_text, n C.size_t, format C.int32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		usage, err := document.Measure(text(json, n))
		if err != nil {
			return err
		}
		switch format {
		case C.MF_TEXT:
			return writeText(out, []byte(document.Text(usage)))
		case C.MF_JSON:
			return writeText(out, document.Report(usage))
		}
		return status.Errorf(status.InvalidArgument, "memory", "format is %d, but must be MF_TEXT or MF_JSON", int(format))
	})
}
