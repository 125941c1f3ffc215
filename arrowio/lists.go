package arrowio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// check implements Check of [source.Facts]. It reads the offsets of lists, 4 or 8 bytes
// for each list, from several record batches at a time. It leaves out files whose lists
// are stored among the values, because each gather checks the rows that it reads.
func (d *Dataset) check(ctx context.Context, fields []int, start, stop int64) error {
	if err := d.table.Calls.Enter(); err != nil {
		return err
	}
	ctx, end := d.table.Calls.Join(ctx)
	defer end()
	done := make(chan error, 1) // if the disk does not answer, the goroutine stays behind
	guard.Go("arrowio", func() error {
		defer d.table.Calls.Leave()
		done <- d.lists.check(ctx, d, fields, start, stop)
		return nil
	}, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return status.Errorf(status.CodeOf(ctx.Err()), "arrowio", "the check of the lists was ended: %w", ctx.Err())
	}
}

// listChecks stores for which records the lists are known to have the right length.
type listChecks struct {
	mu    sync.Mutex
	known map[int][2]int64 // by field: the records [start, stop) of the last check
}

func (c *listChecks) check(ctx context.Context, d *Dataset, fields []int, start, stop int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[int][2]int64{}
	}
	for _, field := range fields {
		if field < 0 || field >= len(d.table.Fields) || d.table.Fields[field].Ragged > 0 || d.table.Fields[field].LastOffsets() < 0 {
			continue
		}
		if k, ok := c.known[field]; ok && k[0] <= start && stop <= k[1] {
			continue
		}
		if err := d.checkLists(ctx, field, start, stop); err != nil {
			return err
		}
		c.known[field] = [2]int64{start, stop}
	}
	return nil
}

// recordsAtOnce is how many records one goroutine checks. The goroutine also checks
// the rest of the last record's batch.
const recordsAtOnce = 64 << 10

// checkLists checks the lists of one field in the records [start, stop).
func (d *Dataset) checkLists(ctx context.Context, field int, start, stop int64) error {
	column, err := d.table.Column(field)
	if err != nil {
		return err
	}
	pieces := (stop - start + recordsAtOnce - 1) / recordsAtOnce
	return parallel(int(pieces), func(piece int) error {
		from := start + int64(piece)*recordsAtOnce
		r := listReader{ctx: ctx, d: d, of: d.table.Fields[field], number: d.columns[field], all: column}
		for record := from; record < min(from+recordsAtOnce, stop); {
			if err := ctx.Err(); err != nil {
				return err
			}
			batch, row := d.table.Index.Locate(record)
			rows := min(d.table.Index.Rows(int(batch))-row, stop-record)
			mixed := (*store)(d).of(batch).Mixed
			if !mixed && (row == 0 || record == start) { // otherwise another goroutine checks the batch
				if err := r.check(batch, row, rows, record); err != nil {
					return (*store)(d).Named(batch, err)
				}
			}
			record += rows
		}
		return nil
	})
}

// listReader reads the offsets of one field, one record batch after the other.
type listReader struct {
	ctx    context.Context
	d      *Dataset
	of     *arrowtype.Field
	number int // of the column in the union
	all    *buffers.Column

	batch   int32
	field   *arrowtype.Field // as the file of the batch stores it
	column  *buffers.Column
	decoded *buffers.Decoded // buffers of a compressed batch, without the values
	buffers [2][][]byte      // offsets and validity, by level
}

// open returns the lists of a record batch, or nil if all rows are null.
func (r *listReader) open(batch int32) (*table.Lists, error) {
	r.batch, r.decoded = batch, nil
	r.field, r.column = r.all.Stored(r.of, batch)
	if r.column == nil {
		return nil, nil
	}
	if (*store)(r.d).Encoded(r.d.table.File(batch)) {
		var err error
		if r.decoded, err = r.d.decodeOnce(r.ctx, batch, r.of, r.number, true); err != nil {
			return nil, err
		}
	}
	return &table.Lists{Field: r.field, Column: r.column, Batch: batch, Read: r.read}, nil
}

// check checks the lists of some rows of a batch. The first of them is row of the
// batch and record of the dataset.
func (r *listReader) check(batch int32, row, rows, record int64) error {
	lists, err := r.open(batch)
	if err == nil && lists != nil {
		err = lists.Check(row, row+rows, record)
	}
	var uneven *table.Uneven
	switch {
	case err == nil:
		return nil
	case errors.As(err, &uneven):
		return uneven.Status()
	}
	return r.damaged(err)
}

// damaged returns the error for invalid offsets. It does not change an error with a
// code.
func (r *listReader) damaged(err error) error {
	var known *status.Error
	if errors.As(err, &known) {
		return err
	}
	f := (*store)(r.d).of(r.batch)
	return f.named(status.Errorf(status.DataLoss, "arrowio", "field %q: record batch %d: %w", r.field.Name, int(r.batch)-f.first, err).
		WithHint("the data are damaged; write them again").With("field", r.field.Name))
}

// read reads a part of a buffer of the batch for table.Lists.
func (r *listReader) read(level int, validity bool, at, bytes int64) ([]byte, error) {
	if r.decoded != nil {
		b := r.decoded.Levels[level].Data
		if validity {
			b = r.decoded.Levels[level].Valid
		}
		switch {
		case validity && b == nil:
			return nil, nil
		case at > int64(len(b))-bytes:
			return nil, fmt.Errorf("a buffer of %d bytes where %d are needed", len(b), at+bytes)
		}
		return b[at : at+bytes], nil
	}
	p := &r.column.Planes[level]
	positions, kind := p.Data, 0
	if validity {
		if p.Valid == nil || p.Valid[r.batch] < 0 {
			return nil, nil
		}
		positions, kind = p.Valid, 1
	}
	for len(r.buffers[kind]) <= level {
		r.buffers[kind] = append(r.buffers[kind], nil)
	}
	b := slices.Grow(r.buffers[kind][level][:0], int(bytes))[:bytes]
	r.buffers[kind][level] = b
	f := (*store)(r.d).of(r.batch)
	if err := f.readFull(r.ctx, b, positions[r.batch]+at); err != nil {
		if gone := f.content.Check(); gone != nil {
			err = gone
		}
		return nil, f.named(err)
	}
	return b, nil
}
