package cstream

/*
#include "cstream.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// batches returns the record batches of a stream, after a check of their lengths,
// offsets and numbers of columns.
func batches(arrays []C.struct_ArrowArray, schema *arrowmeta.Schema) (*table.Batches, error) {
	damaged := func(format string, args ...any) error {
		return status.Errorf(status.DataLoss, "arrowio", format, args...).
			WithHint("the producer of the stream is at fault")
	}
	b := &table.Batches{Origin: "stream", Schema: schema}
	for i := range arrays {
		a := &arrays[i]
		if a.length < 0 || a.length > maxRecords || a.offset < 0 || a.offset > maxRecords {
			return nil, damaged("record batch %d of the stream has %d rows from row %d on", i, a.length, a.offset)
		}
		if int(a.n_children) != len(schema.Fields) {
			return nil, damaged("record batch %d of the stream has %d columns, but the schema has %d", i, a.n_children, len(schema.Fields))
		}
		if nulls := max(int64(a.null_count), arrayOf(a, nil).NullCount()); nulls > 0 {
			return nil, status.Errorf(status.Unsupported, "arrowio", "record batch %d of the stream has %d rows that are null as a whole", i, nulls).
				WithHint("drop those rows")
		}
		b.Rows, b.Skip = append(b.Rows, int64(a.length)), append(b.Skip, int64(a.offset))
	}
	b.Array = func(batch, column int) *table.Array {
		a := &arrays[batch]
		return arrayOf(unsafe.Slice(a.children, int(a.n_children))[column], &schema.Fields[column])
	}
	return b, nil
}

// arrayOf converts an array of a field. The C data interface has no sizes of buffers, except
// for the data buffers of views.
func arrayOf(a *C.struct_ArrowArray, f *arrowmeta.Field) *table.Array {
	if a == nil {
		return nil
	}
	out := &table.Array{Length: int64(a.length), Offset: int64(a.offset), Nulls: int64(a.null_count)}
	views := f != nil && f.Dictionary == nil && (f.Type.Kind == arrowmeta.StringView || f.Type.Kind == arrowmeta.BinaryView)
	if a.n_buffers > 0 && (a.n_buffers <= 3 || views && a.n_buffers <= maxBuffers) { // other types have at most three
		for _, at := range unsafe.Slice(a.buffers, int(a.n_buffers)) {
			out.Buffers = append(out.Buffers, table.Buffer{At: at, Bytes: -1})
		}
	}
	if views {
		out.Buffers = sized(out.Buffers)
	}
	out.Child = func(i int) *table.Array {
		if f == nil || int64(a.n_children) != int64(len(f.Type.Children)) || i >= len(f.Type.Children) {
			return nil
		}
		return arrayOf(unsafe.Slice(a.children, int(a.n_children))[i], &f.Type.Children[i])
	}
	out.Dictionary = func() *table.Array {
		values := *f
		values.Dictionary = nil
		return arrayOf(a.dictionary, &values)
	}
	return out
}

// maxBuffers bounds the buffers of an array of views.
const maxBuffers = 1 << 20

// sized reads the sizes of the data buffers of views from the last buffer, and removes
// that buffer. It returns nil if the sizes are missing.
func sized(buffers []table.Buffer) []table.Buffer {
	last := len(buffers) - 1
	if last < 2 || last > 2 && buffers[last].At == nil {
		return nil
	}
	data := buffers[2:last]
	for i, n := range unsafe.Slice((*int64)(buffers[last].At), len(data)) {
		data[i].Bytes = n
	}
	return buffers[:last]
}
