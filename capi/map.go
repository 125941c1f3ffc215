package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/internal/columns"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// mapFunction is a function of the program that computes rows, of a view of the kind map or of a storage.
type mapFunction struct {
	c C.mf_map

	mu    sync.Mutex
	calls int
	ended bool
}

// newMapFunction reads the function of the caller. Without one, the error says what takes it.
func newMapFunction(p unsafe.Pointer, op, what, hint string) (*mapFunction, error) {
	m := &mapFunction{}
	if p != nil {
		C.mfi_read(unsafe.Pointer(&m.c), C.sizeof_mf_map, p, C.sizeof_mf_map)
	}
	if m.c.function == nil {
		return nil, status.New(status.InvalidArgument, op, what).WithHint("%s", hint)
	}
	return m, nil
}

// end releases the function after its last call.
func (m *mapFunction) end() {
	m.mu.Lock()
	m.ended = true
	last := m.calls == 0
	m.mu.Unlock()
	if last {
		C.mfi_map_release(&m.c)
	}
}

func (m *mapFunction) enter() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return status.Closed("view", "the function is released")
	}
	m.calls++
	return nil
}

func (m *mapFunction) leave() {
	m.mu.Lock()
	m.calls--
	last := m.ended && m.calls == 0
	m.mu.Unlock()
	if last {
		C.mfi_map_release(&m.c)
	}
}

// call implements view.Mapping.Func. If the context ends first, the function goes on in the background.
func (m *mapFunction) call(ctx context.Context, rows *view.Rows) error {
	given, err := newMapRows(rows)
	if err != nil {
		return err
	}
	if err := m.enter(); err != nil {
		C.mfi_map_rows_free(given)
		return err
	}
	done := make(chan error, 1)
	var over atomic.Bool // of the function and of its caller, the first one to end sets it
	guard.Go("capi", func() error {
		defer m.leave()
		var e C.mf_error
		e.struct_size = C.sizeof_mf_error
		code := C.mfi_map_call(&m.c, given, &e)
		if over.Swap(true) {
			C.mfi_map_rows_free(given)
			return nil
		}
		done <- failureOf(code, &e)
		return nil
	}, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		if !over.Swap(true) {
			return status.Ended("view", "the call", ctx.Err())
		}
		err = <-done
	}
	if err == nil {
		err = takeMapRows(rows, given)
	}
	rows.Free = func() { C.mfi_map_rows_free(given) }
	if err != nil {
		rows.Free()
		rows.Free = nil
	}
	return err
}

// failureOf returns the error of a function.
func failureOf(code C.mf_status, e *C.mf_error) error {
	if code == C.MF_OK {
		return nil
	}
	failed := status.Code(code)
	if failed > 0 {
		failed = status.InvalidArgument // such as a positive outcome
	}
	return status.New(failed, "", C.GoString(&e.message[0])).WithHint("%s", C.GoString(&e.hint[0]))
}

// newMapRows copies rows to memory of C, and adds memory for the rows that the function returns.
func newMapRows(rows *view.Rows) (*C.mf_map_rows, error) {
	n := len(rows.Records)
	c := C.mfi_map_rows_new(C.int64_t(n), C.int32_t(len(rows.Returned)), rows.Keys != nil)
	if c == nil {
		return nil, noMemory("%d rows", n)
	}
	copy(unsafe.Slice((*int64)(unsafe.Pointer(c.records)), n), rows.Records)
	if rows.Keys != nil {
		copy(unsafe.Slice((*[2]uint32)(unsafe.Pointer(c.keys)), n), rows.Keys)
	}
	b, err := columns.Of(rows.Fields, rows.In, malloc{})
	if err == nil {
		err = exportBatch(c.given, b)
	}
	for i, f := range rows.Returned {
		if err != nil {
			break
		}
		size := int64(n) * int64(f.RowBytes())
		if f.Ragged > 0 {
			size = -1
		}
		if !C.mfi_map_column_new(c, C.int32_t(i), C.int64_t(size)) {
			err = noMemory("%d rows of field %q", n, f.Name)
		}
	}
	if err != nil {
		C.mfi_map_rows_free(c)
		return nil, err
	}
	return c, nil
}

// takeMapRows sets the rows that a function has returned, in memory of C.
func takeMapRows(rows *view.Rows, c *C.mf_map_rows) error {
	for i, column := range unsafe.Slice(c.out, len(rows.Returned)) {
		f := &rows.Returned[i]
		data, each := unsafe.Slice((*byte)(column.data), int(column.size)), f.RowBytes()
		if f.Ragged == 0 {
			for k := range rows.Records {
				rows.Out[i][k] = data[k*each : (k+1)*each : (k+1)*each]
			}
			continue
		}
		if err := takeRagged(rows.Out[i], f, data, unsafe.Slice((*int64)(column.lengths), len(rows.Records))); err != nil {
			return err
		}
	}
	return nil
}

// takeRagged divides data into rows with some lengths.
func takeRagged(out [][]byte, f *source.Field, data []byte, lengths []int64) error {
	all := len(data)
	for k, n := range lengths {
		if n < 0 || n > int64(len(data)/f.RowBytes()) {
			return status.Errorf(status.InvalidArgument, "view", "row %d of %d of field %q has %d elements, but %d bytes of %d are left", k, len(lengths), f.Name, n, len(data), all).
				WithHint("reserve memory for all rows by mf_map_reserve, and set the length of each row")
		}
		size := int(n) * f.RowBytes()
		out[k], data = data[:size:size], data[size:]
	}
	if len(data) > 0 {
		return status.Errorf(status.InvalidArgument, "view", "the rows of field %q take %d bytes, but %d were reserved", f.Name, all-len(data), all).
			WithHint("reserve as many bytes as the rows have")
	}
	return nil
}
