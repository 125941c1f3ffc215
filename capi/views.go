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

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// newView returns a dataset over others, which it keeps open.
func newView(made *future.Future[source.Source], parents ...*dataset) *dataset {
	v := newDataset(made, slices.ContainsFunc(parents, func(p *dataset) bool { return p.borrowed }))
	for _, p := range parents {
		v.parents = append(v.parents, p.retain())
	}
	return v
}

// withSource is like with. It makes a view of the source of a dataset.
func withSource(h C.uint64_t, out *C.uint64_t, e *C.mf_error, make func(src source.Source) (source.Source, error)) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		src, err := d.opened.Wait(ctx)
		if err != nil {
			return err
		}
		made, err := make(src)
		if err == nil {
			put(newView(future.Of(made), d), out)
		}
		return err
	})
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

//export mfgo_dataset_slice
func mfgo_dataset_slice(h C.uint64_t, start, stop C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		return view.Slice(src, int64(start), int64(stop))
	})
}

//export mfgo_dataset_select
func mfgo_dataset_select(h C.uint64_t, fields *C.mfi_texts, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		if n < 1 {
			return nil, status.Errorf(status.InvalidArgument, "view", "expected at least one field, but n is %d", n)
		}
		list, err := names("fields", fields, int64(n))
		if err != nil {
			return nil, err
		}
		return view.Select(src, list...)
	})
}

//export mfgo_dataset_rename
func mfgo_dataset_rename(h C.uint64_t, renamings *C.mfi_renaming, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		given, err := list("names", renamings, int64(n))
		if err != nil {
			return nil, err
		}
		to := make(map[string]string, len(given))
		for _, r := range given {
			field := C.GoString(r.field)
			if _, twice := to[field]; twice {
				return nil, status.Errorf(status.InvalidArgument, "view", "field %q gets two names", field).
					WithHint("give each field one name").With("field", field)
			}
			to[field] = C.GoString(r.name)
		}
		return view.Rename(src, to)
	})
}

//export mfgo_dataset_take
func mfgo_dataset_take(h C.uint64_t, indices *C.int64_t, n C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		given, err := list("indices", (*int64)(unsafe.Pointer(indices)), int64(n))
		if err != nil {
			return nil, err
		}
		return view.Take(src, given)
	})
}

//export mfgo_dataset_filter
func mfgo_dataset_filter(h C.uint64_t, bits *C.mfi_byte, n C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		if int64(n) != src.Len() {
			return nil, status.Errorf(status.InvalidArgument, "view", "the filter is for %d records, but the dataset has %d", int64(n), src.Len()).
				WithHint("give one value for each record of this dataset")
		}
		keep, err := list("bits", (*byte)(unsafe.Pointer(bits)), (int64(n)+7)/8)
		if err != nil {
			return nil, err
		}
		return view.FilterFunc(src, func(i int64) bool { return keep[i/8]>>(i%8)&1 != 0 })
	})
}

//export mfgo_dataset_stack
func mfgo_dataset_stack(h C.uint64_t, stacks *C.mfi_stack, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		given, err := list("stacks", stacks, int64(n))
		if err != nil {
			return nil, err
		}
		stacked := make([]view.Stacked, len(given))
		for i, s := range given {
			columns, err := names("the fields of a stack", (*C.mfi_texts)(s.fields), int64(s.n_fields))
			if err != nil {
				return nil, err
			}
			stacked[i] = view.Stacked{Name: C.GoString(s.name), Columns: columns}
		}
		return view.Stack(src, stacked...)
	})
}

//export mfgo_dataset_pad
func mfgo_dataset_pad(h C.uint64_t, padding *C.mf_fill, length C.int64_t, flags C.uint32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		const known = C.MF_PAD_LEFT | C.MF_PAD_TRUNCATE
		if flags&^known != 0 {
			return nil, status.Errorf(status.InvalidArgument, "capi", "the flags %#x of pad are not known", uint32(flags&^known))
		}
		field := C.GoString(padding.field)
		t, err := elementType("view", "the padding of field", field, padding.dtype)
		if err != nil {
			return nil, err
		}
		value, err := scalar(t, padding.value)
		if err != nil {
			return nil, err
		}
		p := view.Padding{Length: int(length), Value: value, Left: flags&C.MF_PAD_LEFT != 0, Truncate: flags&C.MF_PAD_TRUNCATE != 0}
		return view.Pad(src, field, p)
	})
}

//export mfgo_dataset_reshape
func mfgo_dataset_reshape(h C.uint64_t, shape *C.mfi_row_shape, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withSource(h, out, e, func(src source.Source) (source.Source, error) {
		field, rows, err := rowShape(shape)
		if err != nil {
			return nil, err
		}
		return view.Reshape(src, field, rows)
	})
}

// mfgo_dataset_window returns before it reads the field of within.
//
//export mfgo_dataset_window
func mfgo_dataset_window(h C.uint64_t, windows *C.mfi_windows, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, d *dataset) error {
		w := view.Windows{Length: int64(windows.length), Stride: int64(windows.stride), Within: C.GoString(windows.within)}
		put(newView(future.Start("capi", func(ctx context.Context) (source.Source, error) {
			src, err := d.opened.Wait(ctx)
			if err != nil {
				return nil, err
			}
			return view.Window(ctx, src, w)
		}), d), out)
		return nil
	})
}

// mfgo_dataset_split returns before it reads the field of within. One part may be released
// before that. The release of the last one ends the reading, and waits for it, because the
// parts keep the memory below alive.
//
//export mfgo_dataset_split
func mfgo_dataset_split(h C.uint64_t, division *C.mfi_division, out *C.mf_dataset, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, d *dataset) error {
		given, err := list("parts", division.parts, int64(division.n_parts))
		if err != nil {
			return err
		}
		if len(given) == 0 {
			return status.New(status.InvalidArgument, "view", "expected at least one part, but n_parts is 0")
		}
		how := view.Division{Seed: int64(division.seed), Within: C.GoString(division.within)}
		for _, s := range given {
			how.Parts = append(how.Parts, view.Share{Name: C.GoString(s.name), Of: float64(s.share)})
		}
		made := future.Start("capi", func(ctx context.Context) ([]source.Source, error) {
			src, err := d.opened.Wait(ctx)
			if err != nil {
				return nil, err
			}
			return view.Split(ctx, src, how)
		})
		var released atomic.Int32
		handles := unsafe.Slice(out, len(given))
		for i := range handles {
			part := future.Start("capi", func(ctx context.Context) (source.Source, error) {
				all, err := made.Wait(ctx)
				if err != nil {
					if ctx.Err() != nil && int(released.Add(1)) == len(given) {
						_ = made.Stop()
					}
					return nil, err
				}
				return all[i], nil
			})
			put(newView(part, d), &handles[i].id)
		}
		return nil
	})
}

//export mfgo_dataset_concat
func mfgo_dataset_concat(list *C.mfi_dataset, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		if n < 1 {
			return status.Errorf(status.InvalidArgument, "view", "expected at least one dataset, but n is %d", n)
		}
		ids := make([]uint64, n)
		for i, d := range unsafe.Slice(list, int(n)) {
			ids[i] = uint64(d.id)
		}
		return useAll(ids, func(ctx context.Context, parents []*dataset) error {
			sources := make([]source.Source, len(parents))
			for i, d := range parents {
				var err error
				if sources[i], err = d.opened.Wait(ctx); err != nil {
					return err
				}
			}
			made, err := view.Concat(sources...)
			if err == nil {
				put(newView(future.Of(made), parents...), out)
			}
			return err
		})
	})
}
