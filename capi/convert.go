package main

/*
#include "internal.h"
*/
import "C"

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/convert"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// conversion is the document of mf_dataset_convert.
type conversion struct {
	Part        int      `json:"part"`
	Parts       int      `json:"parts"`
	RowsPerFile int64    `json:"rows_per_file"`
	Arguments   []string `json:"arguments"`
}

// converted is its report.
type converted struct {
	Records int64    `json:"records"`
	Files   int      `json:"files"`
	Written int      `json:"written"`
	Present int      `json:"present"`
	Bytes   int64    `json:"bytes"`
	Missing []string `json:"missing"`
}

//export mfgo_dataset_convert
func mfgo_dataset_convert(h C.uint64_t, folder *C.char, document *C.mfi_text, size C.size_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withMade(h, e, func(ctx context.Context, d *dataset, src source.Source) error {
		var c conversion
		read := json.NewDecoder(bytes.NewReader(text(document, size)))
		read.DisallowUnknownFields()
		if err := read.Decode(&c); err != nil {
			return status.Errorf(status.InvalidArgument, "convert", "the document cannot be read: %w", err).
				WithHint(`give {"part": 1, "parts": 2}, or {}`)
		}
		files, err := filesOf(ctx, d)
		if err != nil {
			return err
		}
		r, err := convert.View(ctx, files, src, c.Arguments, C.GoString(folder), convert.Options{Part: c.Part, Parts: c.Parts, RowsPerFile: c.RowsPerFile})
		if err != nil {
			return err
		}
		return writeJSON(out, converted{r.Records, r.Files, r.Part.Written, r.Part.Present, r.Part.Bytes, append([]string{}, r.Missing...)})
	})
}

// filesOf returns the dataset of files below views of one dataset each.
func filesOf(ctx context.Context, d *dataset) (*arrowio.Dataset, error) {
	src, err := d.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if files, ok := src.(*arrowio.Dataset); ok {
		return files, nil
	}
	if len(d.parents) != 1 {
		return nil, status.New(status.Unsupported, "convert", "the dataset is no view of files").
			WithHint("convert a dataset that was opened, or a view of one")
	}
	return filesOf(ctx, d.parents[0])
}
