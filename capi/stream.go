package main

/*
#include "internal.h"
*/
import "C"

import (
	"bytes"
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Bounds on a record batch of a stream.
const (
	streamBytes = 16 << 20 // unless one row is larger
	streamRows  = 1 << 20
	chunkBytes  = 1 << 20 // the least that is worth a goroutine
)

// streamObject reads a dataset in order, a record batch at a time. The C side exports
// the batches. A field that may hold nulls is gathered twice, with the fill values 0
// and 1: an element is null if both differ. So a source needs no interface for nulls.
type streamObject struct {
	ready
	dataset  *dataset
	gatherer source.Gatherer
	pool     *pool
	columns  []streamColumn
	rows     int64 // of a full batch
	records  int64 // of the dataset

	mu   sync.Mutex
	next int64 // first record of the next batch
	err  error // of a batch; the stream then has no further one
}

// streamColumn is a field of the dataset, and its place among the parts and blocks.
type streamColumn struct {
	source.Field
	number      int // in the schema
	part, block int // the next part and the next block are those of the nulls, if there may be any
}

func (*streamObject) String() string { return "a stream" }

// Patience implements handle.Object.
func (s *streamObject) Patience() time.Duration { return s.dataset.Patience() }

// Close implements handle.Object. Batches that were delivered keep their memory.
func (s *streamObject) Close() error {
	until := time.Now().Add(patience)
	err := guard.Call("capi", s.gatherer.Close)
	s.pool.release()
	return cmp.Or(err, s.dataset.release(until))
}

// newStream creates a stream of the records of a source, which belongs to d.
func newStream(d *dataset, src source.Source) (*streamObject, error) {
	raiseProcs()
	s := &streamObject{records: src.Len()}
	parts := s.plan(src.Schema())
	if len(s.columns) == 0 {
		return nil, status.New(status.Unsupported, "capi", "the dataset has no field of fixed shape, so a record batch would have no columns").
			WithHint("mf_dataset_info lists its ragged fields and skipped columns with the reasons")
	}
	pool, err := s.newPool()
	if err != nil {
		return nil, err
	}
	if s.gatherer, err = src.Gatherer(parts); err != nil {
		pool.release()
		return nil, err
	}
	s.pool, s.dataset = pool, d.retain()
	return s, nil
}

// plan sets the columns and the number of rows, and returns the parts to gather.
func (s *streamObject) plan(schema source.Schema) []source.Part {
	var parts []source.Part
	bytes, blocks := 0, 0
	for i, f := range schema.Fields {
		if f.Ragged > 0 {
			continue
		}
		box := make([][2]int, len(f.Shape))
		for d, n := range f.Shape {
			box[d][1] = n
		}
		part := source.Part{Field: i, To: f.Type, Boxes: [][][2]int{box}}
		s.columns = append(s.columns, streamColumn{f, i, len(parts), blocks})
		blocks, bytes = blocks+1, bytes+f.RowBytes()
		if f.Nullable {
			part.Fill = fillOf(f.Type, 0)
			other := part
			other.Fill = fillOf(f.Type, 1)
			parts = append(parts, part, other)
			blocks, bytes = blocks+1, bytes+f.RowBytes()/f.Type.Size()
			continue
		}
		parts = append(parts, part)
	}
	s.rows = min(streamRows, max(1, int64(streamBytes/max(bytes, 1))), max(1, s.records))
	return parts
}

func fillOf(t dtype.Type, n int) any {
	if t == dtype.Bool {
		return n == 1
	}
	return n
}

// newPool creates the memory of the batches.
func (s *streamObject) newPool() (*pool, error) {
	n := 0
	for _, c := range s.columns {
		n = c.block + 1
		if c.Nullable {
			n++
		}
	}
	p, err := emptyPool(n, 1, s.rows)
	if err != nil {
		return nil, err
	}
	for _, c := range s.columns {
		shape := append([]int{int(s.rows)}, c.Shape...)
		err := p.addColumn(c.number, c.Name, C.MFI_COLUMN, c.Type, shape)
		if err == nil && c.Nullable {
			err = p.addColumn(c.number, "", C.MFI_NULLS, dtype.Uint8, shape)
		}
		if err != nil {
			p.release()
			return nil, err
		}
	}
	return p, nil
}

// addColumn describes a block that is a whole array.
func (p *pool) addColumn(array int, name string, role C.mfi_role, t dtype.Type, shape []int) error {
	_, dims := int64s(shape, make([]int, len(shape)), shape)
	return p.add(name, C.mfi_block{
		array: C.int32_t(array), role: role, dtype: dlpack(t), ndim: C.int32_t(len(shape)), bytes: C.int64_t(bytesOf(t, shape)),
	}, dims)
}

// read fills the memory of the next batch, and returns its number of rows.
func (s *streamObject) read(ctx context.Context) (*memory, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.rows, s.records-s.next)
	if s.err != nil {
		return nil, 0, s.err
	}
	if n == 0 {
		return nil, 0, status.New(status.End, "capi", "the stream is over")
	}
	m, err := s.pool.slot()
	if err != nil {
		return nil, 0, err
	}
	if s.err = s.fill(ctx, m, n); s.err != nil {
		m.Free()
		return nil, 0, s.err
	}
	s.next += n
	s.gatherer.Ahead(count(s.next, min(s.rows, s.records-s.next)))
	return m, n, nil
}

// count returns the n records from first on.
func count(first, n int64) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = first + int64(i)
	}
	return list
}

// fill gathers n rows. Several goroutines gather a part of them each.
func (s *streamObject) fill(ctx context.Context, m *memory, n int64) error {
	records := count(s.next, n)
	workers := min(int64(runtime.GOMAXPROCS(0)), 1+s.pool.bytes()/chunkBytes, n)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		from, to := n*w/workers, n*(w+1)/workers
		all.Go(func() {
			errs[w] = guard.Call("capi", func() error { return s.gather(ctx, m, records[from:to], int(from)) })
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// gather fills the rows from row `from` on with the given records.
func (s *streamObject) gather(ctx context.Context, m *memory, records []int64, from int) error {
	var jobs []source.Job
	rows := [2]int{0, len(records)}
	others := make([][]byte, len(s.columns)) // the rows whose nulls are 1
	for i, c := range s.columns {
		size := c.RowBytes()
		dst := m.Dst(c.block)[from*size : (from+len(records))*size]
		jobs = append(jobs, source.Job{Part: c.part, Rows: rows, Dst: dst})
		if c.Nullable {
			others[i] = make([]byte, len(dst))
			jobs = append(jobs, source.Job{Part: c.part + 1, Rows: rows, Dst: others[i]})
		}
	}
	if err := s.gatherer.Gather(ctx, records, jobs); err != nil {
		return err
	}
	for i, c := range s.columns {
		if c.Nullable {
			size := c.RowBytes()
			elements := size / c.Type.Size()
			nulls := m.Dst(c.block + 1)[from*elements : (from+len(records))*elements]
			markNulls(nulls, m.Dst(c.block)[from*size:], others[i], c.Type.Size())
		}
	}
	return nil
}

// markNulls sets nulls[i] to 1 if element i of a and b differs, else to 0.
func markNulls(nulls, a, b []byte, size int) {
	clear(nulls)
	if bytes.Equal(a[:len(b)], b) {
		return
	}
	for i := range nulls {
		if !bytes.Equal(a[i*size:(i+1)*size], b[i*size:(i+1)*size]) {
			nulls[i] = 1
		}
	}
}

//export mfgo_dataset_stream
func mfgo_dataset_stream(h C.uint64_t, pool **C.mfi_pool, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		src, err := d.opened.Wait(ctx)
		if err != nil {
			return err
		}
		s, err := newStream(d, src)
		if err != nil {
			return err
		}
		C.mfi_set_pool(pool, s.pool.c)
		put(s, out)
		return nil
	})
}

//export mfgo_stream_next
func mfgo_stream_next(h C.uint64_t, out **C.mf_batch, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, s *streamObject) error {
		m, rows, err := s.read(ctx)
		if err != nil {
			return err
		}
		C.mfi_slot_describe(m.slot, C.mfi_step{rows: C.int64_t(rows)}, nil, 0)
		C.mfi_slot_deliver(m.slot, out)
		return nil
	})
}
