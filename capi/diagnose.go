package main

/*
#include "internal.h"
*/
import "C"

import (
	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/diagnosis/document"
)

//export mfgo_diagnose
func mfgo_diagnose(json *C.mfi_text, n C.size_t, format C.int32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		written, err := formatReport("measurements", text(json, n), format, document.Diagnose,
			formats[*diagnosis.Report]{text: document.Text, json: document.Report})
		if err != nil {
			return err
		}
		return writeText(out, written)
	})
}
