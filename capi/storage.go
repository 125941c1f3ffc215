package main

import (
	"context"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/capi/internal/storage"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
)

// The row that the function of a storage gets, and the row that it returns.
var (
	asked = []source.Field{
		{Name: "what", Type: dtype.Uint8, Ragged: 1, Logical: "string"},
		{Name: "name", Type: dtype.Uint8, Ragged: 1, Logical: "string"},
		{Name: "version", Type: dtype.Uint8, Ragged: 1, Logical: "string"},
		{Name: "offset", Type: dtype.Int64},
		{Name: "size", Type: dtype.Int64},
	}
	answered = []source.Field{{Name: "answer", Type: dtype.Uint8, Ragged: 1, Logical: "binary"}}
)

// openerOf returns an opener of the files of the program, and what ends it.
func openerOf(p unsafe.Pointer) (blob.Opener, func(), error) {
	f, err := newMapFunction(p, "dataset", "the storage has no function", "set mf_map.function, or leave storage NULL")
	if err != nil {
		return nil, nil, err
	}
	return storage.New(func(ctx context.Context, r storage.Request, take func(answer []byte) error) error {
		given := [][]byte{[]byte(r.What), []byte(r.Name), []byte(r.Version), bytesOfInt(r.Offset), bytesOfInt(r.Size)}
		rows := view.Rows{Records: []int64{0}, Fields: asked, Returned: answered, Out: [][][]byte{make([][]byte, 1)}}
		for i, row := range given {
			rows.In = append(rows.In, []source.Span{{Field: i, Row: row}})
		}
		if err := f.call(ctx, &rows); err != nil {
			return err
		}
		defer rows.Free()
		return take(rows.Out[0][0])
	}), f.end, nil
}

// bytesOfInt returns the element of an int64 field.
func bytesOfInt(n int64) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&n)), 8) }
