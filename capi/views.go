package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/document"
)

// newView returns a dataset over others, which it keeps open.
func newView(made *future.Future[source.Source], parents []*dataset) *dataset {
	v := newDataset(made, slices.ContainsFunc(parents, func(p *dataset) bool { return p.borrowed }))
	for _, p := range parents {
		v.parents = append(v.parents, p.retain())
	}
	return v
}

//export mfgo_dataset_view
func mfgo_dataset_view(kind, json *C.mfi_text, size C.size_t, datasets *C.mfi_dataset, n C.int32_t, values *C.mfi_memory, count C.int64_t, out *C.mf_dataset, parts C.int32_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		k, err := document.Find(C.GoString(kind))
		if err != nil {
			return err
		}
		v, err := k.Parse(text(json, size))
		if err != nil {
			return err
		}
		given, function, err := valuesOf(k, unsafe.Pointer(values), int64(count))
		if err != nil {
			return err
		}
		if n < 1 {
			return status.Errorf(status.InvalidArgument, "view", "expected at least one dataset, but n_datasets is %d", n)
		}
		if parts < 1 {
			return status.Errorf(status.InvalidArgument, "view", "expected place for at least one view, but n_views is %d", parts)
		}
		ids, made := make([]uint64, n), unsafe.Slice(out, int(parts))
		for i, d := range unsafe.Slice(datasets, int(n)) {
			ids[i] = uint64(d.id)
		}
		return useAll(ids, func(ctx context.Context, parents []*dataset) error {
			if k.Slow {
				later(v, parents, given, made)
				return nil
			}
			views, err := makeViews(ctx, v, parents, given, len(made))
			for i, view := range views {
				d := newView(future.Of(view), parents)
				if function != nil {
					d.ended = function.end
				}
				put(d, &made[i].id)
			}
			return err
		})
	})
}

// valuesOf returns the values beside the document of a view, in memory of the caller, and the function of
// a map.
func valuesOf(k *document.Kind, p unsafe.Pointer, count int64) (v document.Values, function *mapFunction, err error) {
	v.Count, v.Cache = count, keep
	switch k.Values {
	case document.Records:
		v.Records, err = list("values", (*int64)(p), count)
	case document.Bits:
		v.Bits, err = list("values", (*byte)(p), count/8+min(count%8, 1))
	case document.Function:
		if count != 1 {
			p = nil
		}
		if function, err = newMapFunction(p, "view", "a map takes a function beside its document", "pass a const mf_map* with a function as values, and 1 as n_values"); err == nil {
			v.Func = function.call
		}
	default:
		if p != nil || count != 0 {
			err = status.Errorf(status.InvalidArgument, "view", "%s takes no values beside its document, but got %d", k.Name, count)
		}
	}
	return v, function, err
}

func makeViews(ctx context.Context, v *document.View, below []*dataset, values document.Values, n int) ([]source.Source, error) {
	sources := make([]source.Source, len(below))
	for i, d := range below {
		var err error
		if sources[i], err = d.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return v.Make(ctx, sources, values, n)
}

// keep makes a view of the kind cache.
func keep(ctx context.Context, src source.Source, folder string, bytes int64) (source.Source, error) {
	return arrowio.Cached(ctx, src, arrowio.Options{Cache: folder, CacheHome: cacheHome(), CacheBytes: bytes, FaultHandler: faultHandler()})
}

// later makes views in the background, because that reads rows. A view may be released before
// that. The release of the last one ends the reading, and waits for it, because the views keep
// the memory below alive.
func later(v *document.View, below []*dataset, values document.Values, out []C.mf_dataset) {
	made := future.Start("capi", func(ctx context.Context) ([]source.Source, error) {
		return makeViews(ctx, v, below, values, len(out))
	})
	var released atomic.Int32
	for i := range out {
		view := future.Start("capi", func(ctx context.Context) (source.Source, error) {
			all, err := made.Wait(ctx)
			if err != nil {
				if ctx.Err() != nil && int(released.Add(1)) == len(out) {
					_ = made.Stop()
				}
				return nil, err
			}
			return all[i], nil
		})
		put(newView(view, below), &out[i].id)
	}
}
