package part

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
)

// Files are the parts of some fields of a dataset. Parts are put one by one. Files implement
// table.Store for the rows of these parts.
type Files struct {
	*resident.Set // implements Acquire, Ahead and Arm of table.Store

	fields  []int             // their numbers in the table
	columns []*buffers.Column // by field: positions in the parts
	of      []int32           // by record batch: its part
	named   func(batch int32, err error) error
	parts   []opened
	checked atomic.Int64 // time of the last check of the files, in nanoseconds
}

// opened is a part. Content is set before ready.
type opened struct {
	ready   atomic.Bool
	content *resident.File
}

// NewFiles returns n parts that are not ready. Of has the part of each record batch. The
// columns have room for the positions in each record batch. Named adds the name of a record
// batch's file to an error.
func NewFiles(calls *source.Calls, fields []int, columns []*buffers.Column, of []int32, n int, named func(batch int32, err error) error, o resident.Options) *Files {
	return &Files{fields: fields, columns: columns, of: of, named: named, parts: make([]opened, n), Set: resident.NewGrowing(calls, n, o)}
}

// Put makes a part ready. It holds columns of the fields which, in record batches from first on.
// An error leaves the content to the caller.
func (f *Files) Put(ctx context.Context, part int, content *resident.File, first int, which []int, batches [][]Column) error {
	if err := f.Set.Put(ctx, part, content); err != nil {
		return err
	}
	for i, columns := range batches {
		for k, column := range columns {
			_, to := f.columns[which[k]].Stored(nil, int32(first+i))
			setPositions(to, first+i, column)
		}
	}
	f.parts[part].content = content
	f.parts[part].ready.Store(true)
	return nil
}

// setPositions sets entry batch of the slices in each plane of a column.
func setPositions(to *buffers.Column, batch int, from Column) {
	for n := range to.Planes {
		p, l := &to.Planes[n], &from[n]
		if p.Valid != nil {
			p.Valid[batch] = l.Valid.At
		}
		if p.Data != nil {
			p.Data[batch] = max(l.Data.At, 0)
		}
		if p.Length != nil {
			p.Length[batch] = l.Length
		}
		if p.Buffers != nil {
			p.Buffers[batch] = l.Buffers
		}
	}
}

// Ready reports whether a part was put.
func (f *Files) Ready(part int) bool { return f.parts[part].ready.Load() }

// Close closes the parts. No call may run.
func (f *Files) Close() {
	for i := range f.parts {
		if f.Ready(i) {
			_ = f.parts[i].content.Close()
		}
	}
}

// Columns implements table.Store.
func (f *Files) Columns(fields []int) ([]*buffers.Column, error) {
	list := make([]*buffers.Column, len(fields))
	for i, field := range fields {
		list[i] = f.columns[slices.Index(f.fields, field)]
	}
	return list, nil
}

// Base implements table.Store.
func (f *Files) Base(part int32) (uintptr, bool) {
	if p := &f.parts[part]; p.ready.Load() {
		return p.content.Base()
	}
	return 0, false
}

// checkAfter is the shortest time between two checks of the files. No program writes to
// them, and the fault handler notices if one was made shorter all the same.
const checkAfter = time.Second

// Check implements table.Store. The parts are ready.
func (f *Files) Check(parts []int32) error {
	now, last := time.Now().UnixNano(), f.checked.Load()
	all := now-last > int64(checkAfter) && f.checked.CompareAndSwap(last, now)
	for _, i := range parts {
		content := f.parts[i].content
		if !all && !content.HasFaulted() {
			continue
		}
		if err := content.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Named implements table.Store.
func (f *Files) Named(batch int32, err error) error { return f.named(batch, err) }
