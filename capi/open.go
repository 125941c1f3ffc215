package main

/*
#include "internal.h"
*/
import "C"

import (
	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/capi/internal/options"
	"github.com/meshfeed/meshfeed/core/source"
)

//export mfgo_dataset_open
func mfgo_dataset_open(opts *C.mfi_text, n C.size_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		o := options.Parse("dataset", text(opts, n))
		paths := o.Strings("paths")
		if len(paths) == 0 {
			o.Refuse("paths", "expected at least one path")
		}
		open := arrowio.Options{IO: o.String("io", "auto"), Duplicates: o.String("duplicates", "refuse"), Shapes: shapes(o)}
		if err := o.Err(); err != nil {
			return err
		}
		put(newDataset(future.Start("capi", func() (source.Source, error) {
			return openFiles(paths, open)
		}), false), out)
		return nil
	})
}

// shapes reads the row shapes of lists.
func shapes(o *options.Object) map[string][]int {
	list := o.Object("shapes")
	out := map[string][]int{}
	for _, field := range list.Keys() {
		out[field] = list.Ints(field)
	}
	o.Join(list)
	return out
}
