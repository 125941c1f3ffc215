package main

/*
#include "internal.h"
*/
import "C"

import (
	"github.com/meshfeed/meshfeed/core/plan/diagram/document"
	"github.com/meshfeed/meshfeed/core/status"
)

// maxWidth is the largest width of a diagram, in columns or pixels.
const maxWidth = 1 << 16

//export mfgo_diagram
func mfgo_diagram(json *C.mfi_text, n C.size_t, format C.int32_t, width C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		drawing, err := drawDiagram(text(json, n), format, int64(width))
		if err != nil {
			return err
		}
		return writeText(out, []byte(drawing))
	})
}

func drawDiagram(json []byte, format C.int32_t, width int64) (string, error) {
	switch {
	case format != C.MF_TEXT && format != C.MF_SVG:
		return "", status.Errorf(status.InvalidArgument, "diagram", "format is %d, but must be MF_TEXT or MF_SVG", int(format))
	case width < 0 || width > maxWidth:
		return "", status.Errorf(status.InvalidArgument, "diagram", "width is %d, but must be from 0 to %d", width, maxWidth)
	}
	d, err := document.Draw(json)
	if err != nil {
		return "", err
	}
	if format == C.MF_SVG {
		return d.SVG(int(width)), nil
	}
	return d.Text(int(width)), nil
}
