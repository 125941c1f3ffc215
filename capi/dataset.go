package main

/*
#include "internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// dataset is the object behind an mf_dataset handle. Its handle, its loaders and the
// views over it own it together. The last owner closes the source.
type dataset struct {
	owners   atomic.Int32
	opened   *future.Future[source.Source]
	borrowed bool       // some records are in memory of the caller
	parents  []*dataset // the datasets below a view, which owns them; none for others
	rows     rowReader
	ended    func() // called after the last owner; nil without a function of the program

	mu          sync.Mutex
	fingerprint *future.Future[source.Fingerprint] // nil until a call asks for it
	hash        *future.Future[arrowio.Hash]       // likewise
}

// newDataset returns a dataset with one owner.
func newDataset(opened *future.Future[source.Source], borrowed bool) *dataset {
	d := &dataset{opened: opened, borrowed: borrowed}
	d.owners.Store(1)
	return d
}

func (*dataset) String() string { return "a dataset" }

// Patience implements handle.Object.
func (d *dataset) Patience() time.Duration {
	if d.borrowed {
		return -1
	}
	return patience
}

// Ready implements object.
func (d *dataset) Ready(ctx context.Context) error { return d.opened.Ready(ctx) }

// Wait returns the source when it is open.
func (d *dataset) Wait(ctx context.Context) (source.Source, error) { return d.opened.Wait(ctx) }

// retain adds an owner.
func (d *dataset) retain() *dataset {
	d.owners.Add(1)
	return d
}

// Close implements handle.Object.
func (d *dataset) Close() error {
	until := time.Now().Add(patience)
	err := guard.Call("capi", d.rows.close)
	return cmp.Or(err, d.release(until))
}

// Stop implements stopper. A view may still read records of the datasets below it.
func (d *dataset) Stop() error {
	if len(d.parents) == 0 {
		return nil
	}
	return d.opened.Stop()
}

// release drops an owner. The last one closes the source. Borrowed memory is
// closed on this thread. Files are closed in the background, and release waits
// for that until the given time.
func (d *dataset) release(until time.Time) error {
	if d.owners.Add(-1) > 0 {
		return nil
	}
	d.mu.Lock()
	if d.hash != nil {
		d.hash.Cancel()
	}
	d.mu.Unlock()
	if d.ended != nil {
		defer d.ended()
	}
	return d.opened.Drop(d.Patience(), func(s source.Source, err error) error {
		switch {
		case len(d.parents) > 0:
			return d.releaseParents(until)
		case err != nil:
			return nil // the calls on the handle have reported it
		case d.borrowed:
			return guard.Call("capi", s.Close)
		default:
			return closeUntil(until, s)
		}
	})
}

func (d *dataset) releaseParents(until time.Time) (err error) {
	for _, p := range d.parents {
		err = cmp.Or(err, p.release(until))
	}
	return err
}

// closeUntil closes a source of files, and returns at the given time if the
// file system does not respond.
func closeUntil(until time.Time, s source.Source) error {
	closing := future.Start("capi", func(context.Context) (struct{}, error) { return struct{}{}, s.Close() })
	return closing.Drop(max(0, time.Until(until)), func(_ struct{}, err error) error { return err })
}

// once waits for a value that is computed once, in the background. A caller
// that times out does not stop the computation.
func once[T any](ctx context.Context, d *dataset, f **future.Future[T], compute func(context.Context) (T, error)) (T, error) {
	d.mu.Lock()
	if *f == nil {
		*f = future.Start("capi", compute)
	}
	computed := *f
	d.mu.Unlock()
	return computed.Wait(ctx)
}

// info is the result of mf_dataset_info.
type info struct {
	Records       int64         `json:"records"`
	Fields        []fieldInfo   `json:"fields"`
	Skipped       []skippedInfo `json:"skipped"`
	Files         []fileInfo    `json:"files"`
	Units         *unitsInfo    `json:"units,omitempty"`
	Cache         *cacheInfo    `json:"cache,omitempty"`
	Fingerprinted coverage      `json:"fingerprinted"`

	FarBytes int64             `json:"far_bytes,omitempty"` // size of the files on other machines
	Commits  map[string]string `json:"commits,omitempty"`   // by name; other processes may open with them
	Pinned   []string          `json:"pinned,omitempty"`    // the names under which the same files open again

	Packing *packing.Report `json:"packing,omitempty"` // of a packed view
}

type unitsInfo struct {
	Count   int   `json:"count"`
	Records int64 `json:"records"` // records in the largest unit
}

// cacheInfo says where decoded units are kept, if that is a folder, or should be.
type cacheInfo struct {
	Folder  string `json:"folder,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`   // the most of the folder
	Problem string `json:"problem,omitempty"` // why it is memory all the same
}

type coverage struct {
	Bytes int64 `json:"bytes"`
	Of    int64 `json:"of"`
}

type fieldInfo struct {
	Name     string `json:"name"`
	Type     string `json:"dtype"`
	Shape    []int  `json:"shape"`
	Nullable bool   `json:"nullable"`
	Logical  string `json:"logical,omitempty"`
	Ragged   int    `json:"ragged,omitempty"`
	Kind     string `json:"type,omitempty"`   // type of a ragged field
	Reason   string `json:"reason,omitempty"` // why a ragged field is not an array

	Names []string `json:"names,omitempty"` // class names that integers stand for
}

type skippedInfo struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

type fileInfo struct {
	Path        string `json:"path"`
	Records     int64  `json:"records"`
	Compression string `json:"compression,omitempty"`
}

func infoOf(s source.Source) info {
	out := info{Records: s.Len(), Fields: []fieldInfo{}, Skipped: []skippedInfo{}, Files: []fileInfo{}}
	for _, f := range s.Schema().Fields {
		field := fieldInfo{Name: f.Name, Type: f.Type.String(), Shape: append([]int{}, f.Shape...), Nullable: f.Nullable, Logical: f.Logical, Ragged: f.Ragged, Names: f.Names}
		if f.Ragged > 0 {
			field.Kind, field.Reason = f.TypeString(), f.Why()
		}
		out.Fields = append(out.Fields, field)
	}
	for _, k := range s.Schema().Skipped {
		out.Skipped = append(out.Skipped, skippedInfo(k))
	}
	if units, err := source.UnitsOf(s); err == nil && len(units) > 0 {
		out.Units = &unitsInfo{len(units), slices.Max(units)}
	}
	if c := source.CacheInfoOf(s); c.Problem != nil {
		out.Cache = &cacheInfo{Problem: c.Problem.Error()}
	} else if c.Folder != "" {
		out.Cache = &cacheInfo{Folder: c.Folder, Bytes: c.Limit}
	}
	out.Fingerprinted.Bytes, out.Fingerprinted.Of = source.CoverageOf(s)
	if r, ok := view.PackingOf(s); ok {
		out.Packing = &r
	}
	out.FarBytes, out.Pinned = source.FarBytesOf(s), source.CommitsOf(s)
	if named, ok := s.(interface{ Commits() map[string]string }); ok {
		out.Commits = named.Commits()
	}
	if d, ok := s.(*arrowio.Dataset); ok {
		for _, f := range d.Files() {
			out.Files = append(out.Files, fileInfo{f.Path, f.Records, f.Compression})
		}
	}
	return out
}

//export mfgo_dataset_info
func mfgo_dataset_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withMade(h, e, func(_ context.Context, _ *dataset, src source.Source) error {
		return writeJSON(out, infoOf(src))
	})
}

//export mfgo_dataset_fingerprint
func mfgo_dataset_fingerprint(h C.uint64_t, ms C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		ctx, cancel := within(ctx, ms)
		defer cancel()
		src, err := d.Wait(ctx)
		if err != nil {
			return err
		}
		f, err := once(ctx, d, &d.fingerprint, src.Fingerprint)
		if err != nil {
			return err
		}
		return writeText(out, []byte(f.String()))
	})
}

//export mfgo_dataset_lengths
func mfgo_dataset_lengths(h C.uint64_t, field *C.char, start, stop C.int64_t, lengths *C.int64_t, e *C.mf_error) C.mf_status {
	return withMade(h, e, func(ctx context.Context, _ *dataset, src source.Source) error {
		number, err := src.Schema().Find(C.GoString(field))
		if err != nil {
			return err
		}
		if start < 0 || stop < start || int64(stop) > src.Len() {
			return status.Errorf(status.OutOfRange, "capi", "the records [%d, %d) do not lie within the %d records of the dataset", int64(start), int64(stop), src.Len())
		}
		return source.Lengths(ctx, src, number, int64(start), unsafe.Slice((*int64)(lengths), int64(stop-start)))
	})
}
