package main

/*
#include "internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"encoding/hex"
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
	"github.com/meshfeed/meshfeed/internal/guard"
)

// dataset is the object behind an mf_dataset handle. Its handle, its loaders and its
// slices own it together. The last owner closes the source.
type dataset struct {
	owners   atomic.Int32
	opened   *future.Future[source.Source]
	borrowed bool     // the records are in memory of the caller
	parent   *dataset // the dataset that a view belongs to and owns
	rows     rowReader

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

// release drops an owner. The last one closes the source. Borrowed memory is
// closed on this thread. Files are closed in the background, and release waits
// for that until the given time.
func (d *dataset) release(until time.Time) error {
	if d.owners.Add(-1) > 0 {
		return nil
	}
	if d.parent != nil {
		return d.parent.release(until)
	}
	return d.opened.Drop(d.Patience(), func(s source.Source, err error) error {
		switch {
		case err != nil:
			return nil // the calls on the handle have reported it
		case d.borrowed:
			return guard.Call("capi", s.Close)
		default:
			return closeUntil(until, s)
		}
	})
}

// closeUntil closes a source of files, and returns at the given time if the
// file system does not respond.
func closeUntil(until time.Time, s source.Source) error {
	closing := future.Start("capi", func(context.Context) (struct{}, error) { return struct{}{}, s.Close() })
	return closing.Drop(max(0, time.Until(until)), func(_ struct{}, err error) error { return err })
}

// view returns a dataset of a view, which make makes of the source.
func (d *dataset) view(ctx context.Context, make func(src source.Source) (source.Source, error)) (*dataset, error) {
	src, err := d.opened.Wait(ctx)
	if err != nil {
		return nil, err
	}
	made, err := make(src)
	if err != nil {
		return nil, err
	}
	v := newDataset(future.Of(made), d.borrowed)
	v.parent = d.retain()
	return v, nil
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

// hashFiles returns the hash of all bytes of the files. A slice has the hash of
// the whole dataset.
func (d *dataset) hashFiles(ctx context.Context) (arrowio.Hash, error) {
	for d.parent != nil {
		d = d.parent
	}
	src, err := d.opened.Wait(ctx)
	if err != nil {
		return arrowio.Hash{}, err
	}
	files, ok := src.(*arrowio.Dataset)
	if !ok {
		return arrowio.Hash{}, status.New(status.Unsupported, "capi", "the dataset is in memory and has no files to hash").
			WithHint("the fingerprint covers data in memory")
	}
	return once(ctx, d, &d.hash, files.Hash)
}

// hashInfo is the result of mf_dataset_hash.
type hashInfo struct {
	SHA256 string   `json:"sha256"`
	Files  []string `json:"files"`
}

func hashInfoOf(h arrowio.Hash) hashInfo {
	out := hashInfo{SHA256: hex.EncodeToString(h.Sum[:])}
	for _, sum := range h.Files {
		out.Files = append(out.Files, hex.EncodeToString(sum[:]))
	}
	return out
}

// info is the result of mf_dataset_info.
type info struct {
	Records       int64         `json:"records"`
	Fields        []fieldInfo   `json:"fields"`
	Skipped       []skippedInfo `json:"skipped"`
	Files         []fileInfo    `json:"files"`
	Units         *unitsInfo    `json:"units,omitempty"`
	Fingerprinted coverage      `json:"fingerprinted"`
}

type unitsInfo struct {
	Count   int   `json:"count"`
	Records int64 `json:"records"` // of the largest
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
	Kind     string `json:"type,omitempty"`   // of a ragged field
	Reason   string `json:"reason,omitempty"` // why a ragged field is not an array
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
		field := fieldInfo{Name: f.Name, Type: f.Type.String(), Shape: append([]int{}, f.Shape...), Nullable: f.Nullable, Logical: f.Logical, Ragged: f.Ragged}
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
	if c, ok := s.(source.Covered); ok {
		out.Fingerprinted.Bytes, out.Fingerprinted.Of = c.Coverage()
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
	return with(h, e, func(ctx context.Context, d *dataset) error {
		src, err := d.opened.Wait(ctx)
		if err != nil {
			return err
		}
		return writeJSON(out, infoOf(src))
	})
}

//export mfgo_dataset_fingerprint
func mfgo_dataset_fingerprint(h C.uint64_t, ms C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		ctx, cancel := within(ctx, ms)
		defer cancel()
		src, err := d.opened.Wait(ctx)
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

//export mfgo_dataset_hash
func mfgo_dataset_hash(h C.uint64_t, ms C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		ctx, cancel := within(ctx, ms)
		defer cancel()
		hash, err := d.hashFiles(ctx)
		if err != nil {
			return err
		}
		return writeJSON(out, hashInfoOf(hash))
	})
}

//export mfgo_dataset_slice
func mfgo_dataset_slice(h C.uint64_t, start, stop C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		s, err := d.view(ctx, func(src source.Source) (source.Source, error) {
			return view.Slice(src, int64(start), int64(stop))
		})
		if err == nil {
			put(s, out)
		}
		return err
	})
}

//export mfgo_dataset_lengths
func mfgo_dataset_lengths(h C.uint64_t, field *C.char, start, stop C.int64_t, lengths *C.int64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		src, err := d.opened.Wait(ctx)
		if err != nil {
			return err
		}
		name := C.GoString(field)
		number, _, ok := src.Schema().Field(name)
		if !ok {
			return status.Errorf(status.NotFound, "capi", "there is no field %q", name).With("field", name)
		}
		if start < 0 || stop < start || int64(stop) > src.Len() {
			return status.Errorf(status.OutOfRange, "capi", "the records [%d, %d) do not lie within the %d records of the dataset", int64(start), int64(stop), src.Len())
		}
		return source.Lengths(ctx, src, number, int64(start), unsafe.Slice((*int64)(lengths), int64(stop-start)))
	})
}

//export mfgo_dataset_pad
func mfgo_dataset_pad(h C.uint64_t, padding *C.mf_fill, length C.int64_t, flags C.uint32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		const known = C.MF_PAD_LEFT | C.MF_PAD_TRUNCATE
		if flags&^known != 0 {
			return status.Errorf(status.InvalidArgument, "capi", "the flags %#x of pad are not known", uint32(flags&^known))
		}
		field := C.GoString(padding.field)
		t, err := elementType("view", "the padding of field", field, padding.dtype)
		if err != nil {
			return err
		}
		value, err := scalar(t, padding.value)
		if err != nil {
			return err
		}
		p := view.Padding{Length: int(length), Value: value, Left: flags&C.MF_PAD_LEFT != 0, Truncate: flags&C.MF_PAD_TRUNCATE != 0}
		made, err := d.view(ctx, func(src source.Source) (source.Source, error) { return view.Pad(src, field, p) })
		if err == nil {
			put(made, out)
		}
		return err
	})
}
