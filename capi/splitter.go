package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/split"
)

// splitterObject is the object behind an mf_splitter handle.
type splitterObject struct {
	ready
	*split.Splitter
	arrays []arrayInfo
	pool   *pool
	inputs int
	rows   int64
}

func (*splitterObject) String() string          { return "a splitter" }
func (*splitterObject) Patience() time.Duration { return -1 }

// Close implements handle.Object. Batches that were delivered keep their memory.
func (s *splitterObject) Close() error {
	s.pool.release()
	return nil
}

//export mfgo_splitter_create
func mfgo_splitter_create(lh C.uint64_t, process C.int64_t, list *C.mfi_array, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(lh, e, func(_ context.Context, l *layoutObject) error {
		if err := l.Err(); err != nil {
			return err
		}
		if process < 0 || process >= layout.MaxProcesses {
			return status.Errorf(status.OutOfRange, "split", "process is %d, but must be from 0 to %d", process, layout.MaxProcesses-1)
		}
		s, err := newSplitter(l.Layout, int(process), list, n)
		if err == nil {
			put(s, out)
		}
		return err
	})
}

func newSplitter(l *layout.Layout, process int, list *C.mfi_array, n C.int32_t) (*splitterObject, error) {
	raiseProcs()
	given, err := readArrays(list, n)
	if err != nil {
		return nil, err
	}
	arrays := make([]split.Array, len(given))
	for i, a := range given {
		arrays[i] = split.Array{Name: a.Name, Type: a.Type, Shape: a.Shape, Strides: a.Strides}
	}
	splitter, err := split.New(l.Arrays(), l.Process(process).Blocks, arrays)
	if err != nil {
		return nil, err
	}
	pool, err := newPool(l, process, 0)
	if err != nil {
		return nil, err
	}
	return &splitterObject{Splitter: splitter, arrays: describeArrays(l, process, pool), pool: pool, inputs: len(given), rows: l.BatchSize()}, nil
}

//export mfgo_splitter_info
func mfgo_splitter_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, s *splitterObject) error {
		return writeJSON(out, struct {
			BatchBytes int64       `json:"batch_bytes"`
			Arrays     []arrayInfo `json:"arrays"`
		}{s.pool.bytes(), s.arrays})
	})
}

//export mfgo_split
func mfgo_split(h C.uint64_t, data *C.mfi_address, n C.int32_t, out **C.mf_batch, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, s *splitterObject) error {
		if int(n) != s.inputs {
			return status.Errorf(status.InvalidArgument, "split", "n is %d, but the splitter was created for %d arrays", n, s.inputs)
		}
		m, err := s.pool.slot()
		if err != nil {
			return err
		}
		if err := s.Split(unsafe.Slice((*uintptr)(unsafe.Pointer(data)), int(n)), m.Dst); err != nil {
			m.Free()
			return err
		}
		C.mfi_slot_describe(m.slot, C.mfi_step{rows: C.int64_t(s.rows)}, nil, 0)
		C.mfi_slot_deliver(m.slot, out)
		return nil
	})
}
