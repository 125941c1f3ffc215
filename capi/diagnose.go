package main

/*
#include "internal.h"
*/
import "C"

import (
	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/diagnosis/document"
	"github.com/meshfeed/meshfeed/core/status"
)

//export mfgo_diagnose
func mfgo_diagnose(json *C.mfi_text, n C.size_t, format C.int32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		report, err := diagnose(text(json, n), format)
		if err != nil {
			return err
		}
		return writeText(out, report)
	})
}

// diagnose reports on a measurements document in one of the formats.
func diagnose(measurements []byte, format C.int32_t) ([]byte, error) {
	write := map[C.int32_t]func(*diagnosis.Report) []byte{
		C.MF_TEXT: func(r *diagnosis.Report) []byte { return []byte(document.Text(r)) },
		C.MF_JSON: document.Report,
		C.MF_HTML: func(r *diagnosis.Report) []byte { return []byte(document.HTML(r)) },
	}[format]
	if write == nil {
		return nil, status.Errorf(status.InvalidArgument, "measurements", "format is %d, but must be MF_TEXT, MF_JSON or MF_HTML", int(format))
	}
	r, err := document.Diagnose(measurements)
	if err != nil {
		return nil, err
	}
	return write(r), nil
}
