package arrowio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

var _ source.Checker = (*Dataset)(nil)

// Check implements source.Checker: it reads the offsets of lists, 4 or 8 bytes
// for each list, from several record batches at a time.
func (d *Dataset) Check(ctx context.Context, fields []int, start, stop int64) error {
	if err := d.table.Gate.Enter(); err != nil {
		return err
	}
	ctx, end := d.table.Gate.Join(ctx)
	defer end()
	done := make(chan error, 1) // a read that the disk does not answer goes on alone
	guard.Go("arrowio", func() error {
		defer d.table.Gate.Leave()
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

// listChecks knows the records whose lists were found to be right.
type listChecks struct {
	mu    sync.Mutex
	known map[int][2]int64 // by field
}

func (c *listChecks) check(ctx context.Context, d *Dataset, fields []int, start, stop int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[int][2]int64{}
	}
	for _, field := range fields {
		if field < 0 || field >= len(d.table.Fields) || !d.table.Fields[field].HasLists() {
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

// recordsAtOnce is how many records one goroutine checks in a row, apart from
// the rest of the last one's batch.
const recordsAtOnce = 64 << 10

// checkLists checks the lists of one field.
func (d *Dataset) checkLists(ctx context.Context, field int, start, stop int64) error {
	column, err := d.table.Column(field)
	if err != nil {
		return err
	}
	pieces := (stop - start + recordsAtOnce - 1) / recordsAtOnce
	return parallel(int(pieces), func(piece int) error {
		from := start + int64(piece)*recordsAtOnce
		c := listCheck{ctx: ctx, d: d, field: field, column: column}
		for record := from; record < min(from+recordsAtOnce, stop); {
			if err := ctx.Err(); err != nil {
				return err
			}
			batch, row := d.table.Index.Locate(record)
			rows := min(d.table.Index.Rows(int(batch))-row, stop-record)
			if row == 0 || record == start { // else another goroutine checks the batch
				if err := c.batch(batch, row, rows, record); err != nil {
					return (*store)(d).Named(batch, err)
				}
			}
			record += rows
		}
		return nil
	})
}

// listCheck checks the lists of one field in one record batch after the other.
type listCheck struct {
	ctx    context.Context
	d      *Dataset
	field  int
	column *table.Column

	batchNumber int32
	decoded     *table.Decoded // of a compressed batch, without the values
	buffers     [2][][]byte    // offsets and validity, by node
}

// batch checks rows of a batch, from one on that is a record's.
func (c *listCheck) batch(batch int32, row, rows, record int64) (err error) {
	field := c.d.table.Fields[c.field]
	c.batchNumber, c.decoded = batch, nil
	if (*store)(c.d).Encoded(c.d.table.File(batch)) {
		if c.decoded, err = c.d.decode(c.ctx, batch, field, c.d.columns[c.field], true); err != nil {
			return err
		}
	}
	l := table.Lists{Field: field, Column: c.column, Batch: batch, Read: c.read}
	err = l.Check(row, row+rows, record)
	var uneven *table.Uneven
	var known *status.Error
	switch {
	case errors.As(err, &uneven):
		return uneven.Status()
	case err != nil && !errors.As(err, &known):
		return status.Errorf(status.DataLoss, "arrowio", "field %q: record batch %d: %w", field.Name, int(batch)-(*store)(c.d).of(batch).first, err).
			WithHint("the data are damaged; write them again").With("field", field.Name)
	}
	return err
}

// read reads a part of a buffer of the batch, as table.Lists wants it.
func (c *listCheck) read(node int, validity bool, at, bytes int64) ([]byte, error) {
	if c.decoded != nil {
		b := c.decoded.Nodes[node].Data
		if validity {
			b = c.decoded.Nodes[node].Valid
		}
		switch {
		case validity && b == nil:
			return nil, nil
		case at > int64(len(b))-bytes:
			return nil, fmt.Errorf("a buffer of %d bytes where %d are needed", len(b), at+bytes)
		}
		return b[at : at+bytes], nil
	}
	p := &c.column.Planes[node]
	positions, kind := p.Data, 0
	if validity {
		if p.Valid == nil || p.Valid[c.batchNumber] < 0 {
			return nil, nil
		}
		positions, kind = p.Valid, 1
	}
	for len(c.buffers[kind]) <= node {
		c.buffers[kind] = append(c.buffers[kind], nil)
	}
	b := slices.Grow(c.buffers[kind][node][:0], int(bytes))[:bytes]
	c.buffers[kind][node] = b
	f := (*store)(c.d).of(c.batchNumber)
	if err := f.readFull(c.ctx, b, positions[c.batchNumber]+at); err != nil {
		if gone := f.content.Check(); gone != nil {
			err = gone
		}
		return nil, f.named(err)
	}
	return b, nil
}
