package main

/*
#include "internal.h"
*/
import "C"

import (
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/status"
)

//export mfgo_advise
func mfgo_advise(json *C.mfi_text, n C.size_t, format C.int32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		advice, err := advise(text(json, n), format)
		if err != nil {
			return err
		}
		return writeText(out, advice)
	})
}

// advise answers a strategy document in one of the formats.
func advise(question []byte, format C.int32_t) ([]byte, error) {
	write := map[C.int32_t]func(*strategy.Document, *strategy.Report) []byte{
		C.MF_TEXT: func(d *strategy.Document, r *strategy.Report) []byte { return []byte(document.Text(d, r)) },
		C.MF_JSON: func(_ *strategy.Document, r *strategy.Report) []byte { return document.Report(r) },
	}[format]
	if write == nil && format != C.MF_DOCUMENT {
		return nil, status.Errorf(status.InvalidArgument, "strategy", "format is %d, but must be MF_TEXT, MF_JSON or MF_DOCUMENT", int(format))
	}
	d, err := document.Parse(question)
	if err != nil {
		return nil, err
	}
	if format == C.MF_DOCUMENT {
		return document.Canonical(d), strategy.Check(d)
	}
	r, err := strategy.Advise(d)
	if err != nil {
		return nil, err
	}
	return write(d, r), nil
}
