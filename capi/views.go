package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

//export mfgo_dataset_select
func mfgo_dataset_select(h C.uint64_t, fields *C.mfi_texts, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		if n < 1 {
			return status.Errorf(status.InvalidArgument, "view", "expected at least one field, but n is %d", n)
		}
		names := make([]string, n)
		for i, p := range unsafe.Slice(fields, int(n)) {
			names[i] = C.GoString(p)
		}
		v, err := d.view(ctx, func(src source.Source) (source.Source, error) { return view.Select(src, names...) })
		if err == nil {
			put(v, out)
		}
		return err
	})
}

//export mfgo_dataset_take
func mfgo_dataset_take(h C.uint64_t, indices *C.int64_t, n C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		given, err := list("indices", (*int64)(unsafe.Pointer(indices)), int64(n))
		if err != nil {
			return err
		}
		v, err := d.view(ctx, func(src source.Source) (source.Source, error) { return view.Take(src, given) })
		if err == nil {
			put(v, out)
		}
		return err
	})
}
