package main

/*
#include "internal.h"

#include <stdlib.h>
*/
import "C"

import (
	"context"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/columns"
)

// malloc is memory of C, so that the buffers of a record batch are freed without Go.
type malloc struct{}

// Resize implements columns.Memory.
func (malloc) Resize(b []byte, size int) ([]byte, error) {
	p := C.mfi_buffer_resize(unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b)), C.size_t(size))
	if p == nil {
		return nil, noMemory("%d bytes of a column", size).WithHint("read fewer records at a time")
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// Free implements columns.Memory.
func (malloc) Free(b []byte) { C.mfi_buffer_free(unsafe.Pointer(unsafe.SliceData(b))) }

// readerOf returns a reader of all fields of a source.
func readerOf(src source.Source, o columns.Options) (*columns.Reader, error) {
	numbers := make([]int, len(src.Schema().Fields))
	if len(numbers) == 0 {
		return nil, status.New(status.Unsupported, "capi", "the dataset has no field, so a record batch would have no columns").
			WithHint("mf_dataset_info lists its skipped columns with the reasons")
	}
	for i := range numbers {
		numbers[i] = i
	}
	return columns.New(src, numbers, o)
}

// rowReader is the reader of mf_dataset_rows, which the first call makes.
type rowReader struct {
	mu     sync.Mutex
	reader *columns.Reader
}

// get returns the reader of the fields of a source, and makes it in the first call.
func (r *rowReader) get(src source.Source) (*columns.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reader == nil {
		raiseProcs()
		made, err := readerOf(src, columns.Options{Wide: true, Memory: malloc{}})
		if err != nil {
			return nil, err
		}
		r.reader = made
	}
	return r.reader, nil
}

// close closes the reader. No call uses it.
func (r *rowReader) close() error {
	if r.reader == nil {
		return nil
	}
	return r.reader.Close()
}

// exportBatch moves the buffers of a batch to Arrow arrays.
func exportBatch(out *C.struct_ArrowArray, b *columns.Batch) error {
	defer b.Free(malloc{}) // what was not moved
	if !C.mfi_record_begin(out, C.int64_t(b.Rows), C.int64_t(len(b.Columns))) {
		return noMemory("a record batch")
	}
	for i, c := range b.Columns {
		for d := range c.Levels {
			if !exportLevel(out, i, d, &c.Levels[d], d+1 < len(c.Levels)) {
				C.mfi_record_release(out)
				return noMemory("a record batch")
			}
		}
	}
	return nil
}

// exportLevel moves the buffers of a level. It reports whether there was memory.
func exportLevel(out *C.struct_ArrowArray, column, d int, l *columns.Level, child bool) bool {
	buffers := [][]byte{l.Validity}
	if l.Kind == columns.Text || l.Kind == columns.List {
		buffers = append(buffers, l.Offsets)
	}
	if l.Kind == columns.Text || l.Kind == columns.Values {
		buffers = append(buffers, l.Data)
	}
	if !C.mfi_record_level(out, C.int64_t(column), C.int32_t(d), C.int64_t(l.Length), C.int64_t(l.Nulls), C.int32_t(len(buffers)), C.bool(child)) {
		return false
	}
	for i, b := range buffers {
		if b != nil {
			C.mfi_record_buffer(out, C.int64_t(column), C.int32_t(d), C.int32_t(i), unsafe.Pointer(unsafe.SliceData(b)), C.int64_t(len(b)))
		}
	}
	l.Validity, l.Offsets, l.Data = nil, nil, nil
	return true
}

// exportSchema writes the Arrow schema of fields. A format that is not empty replaces the
// default format of the value type.
func exportSchema(out *C.struct_ArrowSchema, fields []source.Field, formats []string, wide bool) error {
	if !C.mfi_record_schema(out, C.int64_t(len(fields))) {
		return noMemory("a schema")
	}
	for i, f := range fields {
		levels, name := columns.Levels(f, wide), f.Name
		for d, l := range levels {
			format := formatOf(l)
			if l.Kind == columns.Values && i < len(formats) && formats[i] != "" {
				format = formats[i]
			}
			if l.Kind == columns.FixedList && l.Size > math.MaxInt32 {
				C.mfi_record_schema_release(out)
				return status.Errorf(status.Unsupported, "capi", "field %q has a dimension of %d, and Arrow's lists have at most 2^31-1 elements", f.Name, l.Size)
			}
			if !exportType(out, i, d, format, name, d+1 < len(levels)) {
				C.mfi_record_schema_release(out)
				return noMemory("a schema")
			}
			name = "item"
		}
	}
	return nil
}

// exportType adds the type of a level. It reports whether there was memory.
func exportType(out *C.struct_ArrowSchema, column, d int, format, name string, child bool) bool {
	formatText, nameText := C.CString(format), C.CString(name)
	defer C.free(unsafe.Pointer(formatText))
	defer C.free(unsafe.Pointer(nameText))
	return bool(C.mfi_record_type(out, C.int64_t(column), C.int32_t(d), formatText, nameText, C.bool(child)))
}

// formatOf returns the format string of a level in Arrow's C data interface.
func formatOf(l columns.Level) string {
	switch l.Kind {
	case columns.List:
		return pick(l.Wide, "+L", "+l")
	case columns.FixedList:
		return fmt.Sprintf("+w:%d", l.Size)
	case columns.Text:
		return pick(l.UTF8, pick(l.Wide, "U", "u"), pick(l.Wide, "Z", "z"))
	}
	return valueFormats[l.Type]
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

var valueFormats = map[dtype.Type]string{
	dtype.Bool: "b", dtype.Int8: "c", dtype.Int16: "s", dtype.Int32: "i", dtype.Int64: "l",
	dtype.Uint8: "C", dtype.Uint16: "S", dtype.Uint32: "I", dtype.Uint64: "L",
	dtype.Float16: "e", dtype.Float32: "f", dtype.Float64: "g",
}

//export mfgo_dataset_rows
func mfgo_dataset_rows(h C.uint64_t, records *C.int64_t, n C.int64_t, array *C.struct_ArrowArray, schema *C.struct_ArrowSchema, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		numbers, err := list("records", (*int64)(unsafe.Pointer(records)), int64(n))
		if err != nil {
			return err
		}
		src, err := d.Wait(ctx)
		if err != nil {
			return err
		}
		reader, err := d.rows.get(src)
		if err != nil {
			return err
		}
		b, err := reader.Read(ctx, numbers, 0)
		if err != nil {
			return err
		}
		if err := exportBatch(array, b); err != nil || schema == nil {
			return err
		}
		if err := exportSchema(schema, reader.Fields(), nil, true); err != nil {
			C.mfi_record_release(array)
			return err
		}
		return nil
	})
}
