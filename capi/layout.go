package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/wasm/page"
)

// layoutObject is the object behind an mf_layout handle.
type layoutObject struct {
	ready
	*layout.Layout
}

func (*layoutObject) String() string          { return "a layout" }
func (*layoutObject) Patience() time.Duration { return -1 }
func (*layoutObject) Close() error            { return nil }

//export mfgo_layout_create
func mfgo_layout_create(json *C.mfi_text, n C.size_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		d, err := document.Parse(text(json, n))
		if err != nil {
			return err
		}
		l, err := layout.Draft(d)
		if err != nil {
			return err
		}
		put(&layoutObject{Layout: l}, out)
		return nil
	})
}

//export mfgo_layout_json
func mfgo_layout_json(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, l *layoutObject) error {
		return writeText(out, document.Canonical(l.Document()))
	})
}

//export mfgo_layout_report
func mfgo_layout_report(h C.uint64_t, flags C.uint32_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, l *layoutObject) error {
		return writeText(out, document.Report(l.Layout, document.ReportOptions{Tables: flags&C.MF_ALL_DEVICES != 0}))
	})
}

//export mfgo_layout_draw
func mfgo_layout_draw(h C.uint64_t, p *C.mfi_picture, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, l *layoutObject) error {
		drawing, err := l.draw(p)
		if err != nil {
			return err
		}
		return writeText(out, []byte(drawing))
	})
}

func (l *layoutObject) draw(p *C.mfi_picture) (string, error) {
	invalid := func(format string, args ...any) (string, error) {
		return "", status.Errorf(status.InvalidArgument, "layout", format, args...)
	}
	o := picture.Options{Width: int(p.width), Array: C.GoString(p.array)}
	if o.Width < 0 {
		return invalid("width is %d, but must be positive, or 0 for 80 columns", o.Width)
	}
	if p.dims != nil {
		dims := unsafe.Slice(p.dims, 2)
		o.Dims = []int{int(dims[0]), int(dims[1])}
	}
	if err := o.Check(l.Layout); err != nil {
		return "", err
	}
	switch p.format {
	case C.MF_TEXT:
		return picture.Text(l.Layout, o), nil
	case C.MF_SVG:
		return picture.SVG(l.Layout, o), nil
	}
	return invalid("format is %d, but must be MF_TEXT or MF_SVG", int(p.format))
}

//export mfgo_layout_page
func mfgo_layout_page(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, l *layoutObject) error {
		html, err := page.HTML(document.Canonical(l.Document()))
		if err != nil {
			return err
		}
		return writeText(out, html)
	})
}
