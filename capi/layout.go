package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/options"
	"github.com/meshfeed/meshfeed/core/layout"
)

// layoutObject is what an mf_layout names.
type layoutObject struct{ *layout.Layout }

func (*layoutObject) String() string             { return "a layout" }
func (*layoutObject) Patience() time.Duration    { return -1 }
func (*layoutObject) Close() error               { return nil }
func (*layoutObject) wait(context.Context) error { return nil }

//export mfgo_layout_create
func mfgo_layout_create(json *C.mfi_text, n C.size_t, out *C.mf_layout, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		d, err := layout.Parse(text(json, n))
		if err != nil {
			return err
		}
		l, err := layout.New(d)
		if err != nil {
			return err
		}
		put(&layoutObject{l}, out)
		return nil
	})
}

//export mfgo_layout_json
func mfgo_layout_json(h C.mf_layout, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *layoutObject) error {
			return give(out, l.Document().Canonical())
		})
	})
}

//export mfgo_layout_report
func mfgo_layout_report(h C.mf_layout, opts *C.mfi_text, n C.size_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *layoutObject) error {
			o := options.Parse("layout", text(opts, n))
			r := layout.ReportOptions{Tables: o.Bool("tables", false)}
			if err := o.Err(); err != nil {
				return err
			}
			return give(out, l.Report(r))
		})
	})
}
