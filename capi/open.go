package main

/*
#include "internal.h"
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"encoding/json"
	"path/filepath"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/cstream"
	"github.com/meshfeed/meshfeed/arrowio/tensors"
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

//export mfgo_dataset_open
func mfgo_dataset_open(paths *C.mfi_texts, n C.int32_t, opts *C.mfi_dataset_options, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		files, err := readPaths(paths, n)
		if err != nil {
			return err
		}
		o := arrowio.Options{}
		if o.Shapes, o.Types, err = shapes(opts); err != nil {
			return err
		}
		if o.IO, err = choice("io", opts.io, "auto", "map", "read"); err != nil {
			return err
		}
		if opts.split != nil {
			o.Split = C.GoString(opts.split)
		}
		if opts.commits != nil {
			if err := json.Unmarshal([]byte(C.GoString(opts.commits)), &o.Commits); err != nil {
				return status.Errorf(status.InvalidArgument, "meshfeed", "commits is no JSON object of texts: %v", err)
			}
		}
		if opts.cache != nil {
			o.Cache = C.GoString(opts.cache)
		}
		o.CacheHome, o.Getenv = cacheHome(), environment
		o.CacheBytes = int64(opts.cache_bytes)
		if opts.n_columns != 0 {
			if o.Columns, err = names("columns", (*C.mfi_texts)(opts.columns), int64(opts.n_columns)); err != nil {
				return err
			}
		}
		if opts.dtype != (C.mf_dtype{}) {
			if o.DType, err = elementType("meshfeed", "raw files", "tokens", opts.dtype); err != nil {
				return err
			}
		}
		o.Skip = int64(opts.skip)
		if opts.flags&C.MF_ALLOW_DUPLICATES != 0 {
			o.Duplicates = "allow"
		}
		o.Images = opts.flags&C.MF_IMAGES != 0
		var ended func()
		if opts.storage != nil {
			if o.Opener, ended, err = openerOf(unsafe.Pointer(opts.storage)); err != nil {
				return err
			}
		}
		d := newDataset(future.Start("capi", func(ctx context.Context) (source.Source, error) {
			return openFiles(ctx, files, o)
		}), false)
		d.ended = ended
		put(d, out)
		return nil
	})
}

//export mfgo_dataset_open_tensors
func mfgo_dataset_open_tensors(path *C.mfi_text, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		name := C.GoString(path)
		put(newDataset(future.Start("capi", func(ctx context.Context) (source.Source, error) {
			opener, public, err := arrowio.OpenerOf(ctx, name, arrowio.Options{Getenv: environment})
			if err != nil {
				return nil, err
			}
			return tensors.OpenFrom(ctx, opener, public)
		}), false), out)
		return nil
	})
}

// environment returns a variable of the environment as it is now, or "": Go has copied the environment
// when the library was loaded.
func environment(name string) string {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if value := C.getenv(text); value != nil {
		return C.GoString(value)
	}
	return ""
}

// cacheHome returns the user's cache directory. It returns "" if the environment names none.
func cacheHome() string {
	if dir := environment("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := environment("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache")
	}
	return ""
}

func readPaths(paths *C.mfi_texts, n C.int32_t) ([]string, error) {
	if n < 1 {
		return nil, status.Errorf(status.InvalidArgument, "dataset", "expected at least one path, but n is %d", n)
	}
	names := make([]string, n)
	for i, p := range unsafe.Slice(paths, int(n)) {
		names[i] = C.GoString(p) // arrowio refuses an empty path
	}
	return names, nil
}

// names copies n texts.
func names(what string, texts *C.mfi_texts, n int64) ([]string, error) {
	given, err := list(what, texts, n)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(given))
	for i, p := range given {
		out[i] = C.GoString(p)
	}
	return out, nil
}

// choice returns names[n], the name of an enumerator. An error names the field of
// the options.
func choice(field string, n C.int32_t, names ...string) (string, error) {
	if n < 0 || int(n) >= len(names) {
		return "", status.Errorf(status.InvalidArgument, "meshfeed", "%s is %d, but must be from 0 to %d", field, n, len(names)-1)
	}
	return names[n], nil
}

// shapes returns the row shapes that the options give, and the types of the elements of
// binary values, by field.
func shapes(o *C.mfi_dataset_options) (out map[string][]int, types map[string]dtype.Type, err error) {
	given, err := list("shapes", o.shapes, int64(o.n_shapes))
	if err != nil {
		return nil, nil, err
	}
	out, types = make(map[string][]int, len(given)), map[string]dtype.Type{}
	for _, s := range given {
		name, shape, err := rowShape(&s)
		if err != nil {
			return nil, nil, err
		}
		if out[name] = shape.Dims; shape.Type != dtype.Invalid {
			types[name] = shape.Type
		}
	}
	return out, types, nil
}

// rowShape returns the name of a field, and the shape of its rows.
func rowShape(s *C.mfi_row_shape) (name string, shape view.Shape, err error) {
	name = C.GoString(s.field)
	dims, err := list("a row shape", s.shape, int64(s.ndim))
	if err != nil {
		return "", view.Shape{}, err
	}
	if shape.Dims = ints(dims); s.dtype != (C.mf_dtype{}) {
		shape.Type, err = elementType("meshfeed", "the row shape of field", name, s.dtype)
	}
	return name, shape, err
}

//export mfgo_dataset_open_stream
func mfgo_dataset_open_stream(stream *C.struct_ArrowArrayStream, opts *C.mfi_dataset_options, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		rows, types, err := shapes(opts)
		if err != nil {
			return err
		}
		src, err := cstream.Read(unsafe.Pointer(stream), cstream.Options{Shapes: rows, Types: types})
		if err != nil {
			return err
		}
		put(newDataset(future.Of(src), true), out)
		return nil
	})
}
