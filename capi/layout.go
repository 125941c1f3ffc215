package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/options"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/wasm/page"
)

// layoutObject is what an mf_layout names.
type layoutObject struct{ *layout.Layout }

func (*layoutObject) String() string             { return "a layout" }
func (*layoutObject) Patience() time.Duration    { return -1 }
func (*layoutObject) Close() error               { return nil }
func (*layoutObject) wait(context.Context) error { return nil }

//export mfgo_layout_create
func mfgo_layout_create(json *C.mfi_text, n C.size_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		d, err := document.Parse(text(json, n))
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
func mfgo_layout_json(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *layoutObject) error {
			return give(out, document.Canonical(l.Document()))
		})
	})
}

//export mfgo_layout_report
func mfgo_layout_report(h C.uint64_t, opts *C.mfi_text, n C.size_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *layoutObject) error {
			o := options.Parse("layout", text(opts, n))
			r := document.ReportOptions{Tables: o.Bool("tables", false)}
			if err := o.Err(); err != nil {
				return err
			}
			return give(out, document.Report(l.Layout, r))
		})
	})
}

//export mfgo_layout_draw
func mfgo_layout_draw(h C.uint64_t, opts *C.mfi_text, n C.size_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *layoutObject) error {
			picture, err := l.draw(text(opts, n))
			if err != nil {
				return err
			}
			return give(out, []byte(picture))
		})
	})
}

// draw gives a picture of the layout.
func (l *layoutObject) draw(opts []byte) (string, error) {
	o := options.Parse("layout", opts)
	format := o.String("format", "text")
	p := picture.Options{Width: o.IntFrom("width", 0, 0), Array: o.String("array", "")}
	if known := slices.ContainsFunc(l.Arrays(), func(a layout.Array) bool { return a.Name == p.Array }); p.Array != "" && !known {
		o.Refuse("array", "there is no array %q", p.Array)
	}
	if o.Has("dims") {
		p.Dims = o.Ints("dims")
		l.checkDims(o, p)
	}
	if format != "text" && format != "svg" {
		o.Refuse("format", `expected "text" or "svg", but found %q`, format)
	}
	if err := o.Err(); err != nil {
		return "", err
	}
	if format == "svg" {
		return picture.SVG(l.Layout, p), nil
	}
	return picture.Text(l.Layout, p), nil
}

// checkDims refuses dimensions that no array of the picture has.
func (l *layoutObject) checkDims(o *options.Object, p picture.Options) {
	rank, ok := picture.Dims(l.Layout, p)
	if rank < 2 {
		o.Refuse("dims", "expected none, since there are no two dimensions to choose")
	} else if !ok {
		o.Refuse("dims", "expected two different dimensions from 0 to %d, but found %v", rank-1, p.Dims)
	}
}

//export mfgo_layout_page
func mfgo_layout_page(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *layoutObject) error {
			html, err := page.HTML(document.Canonical(l.Document()))
			if err != nil {
				return err
			}
			return give(out, html)
		})
	})
}
