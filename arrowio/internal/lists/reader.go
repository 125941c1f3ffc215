package lists

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// reader reads the offsets of one field, one record batch after the other.
type reader struct {
	ctx   context.Context
	lists *Lists
	of    units.Field
	all   *buffers.Column

	batch   int32
	field   *arrowtype.Field // as the file of the batch stores it
	column  *buffers.Column
	decoded *buffers.Decoded // buffers of a compressed batch, without the values
	buffers [2][][]byte      // offsets and validity, by level
}

// open returns the lists of a record batch, or nil if all rows are null.
func (r *reader) open(batch int32) (*table.Lists, error) {
	r.batch, r.decoded = batch, nil
	r.field, r.column = r.all.Stored(r.of.Field, batch)
	if r.column == nil {
		return nil, nil
	}
	if r.lists.files.File(batch).Encoding != "" {
		var err error
		if r.decoded, err = r.lists.decoded.Once(r.ctx, batch, r.of, true); err != nil {
			return nil, err
		}
	}
	return &table.Lists{Field: r.field, Column: r.column, Batch: batch, Read: r.read}, nil
}

// check checks the lists of some rows of a batch. The first of them is row of the
// batch and record of the dataset.
func (r *reader) check(batch int32, row, rows, record int64) error {
	lists, err := r.open(batch)
	if err == nil && lists != nil {
		err = lists.Check(row, row+rows, record)
	}
	if uneven, ok := errors.AsType[*table.Uneven](err); ok {
		return uneven.Status()
	}
	return r.damaged(err)
}

// damaged returns the error for invalid offsets. It does not change an error with a
// code.
func (r *reader) damaged(err error) error {
	if _, known := errors.AsType[*status.Error](err); known || err == nil {
		return err
	}
	f := r.lists.files.File(r.batch)
	return f.Named(status.Errorf(status.DataLoss, "arrowio", "field %q: record batch %d: %w", r.field.Name, int(r.batch)-f.First, err).
		WithHint("the data are damaged; write them again").With("field", r.field.Name))
}

// read reads a part of a buffer of the batch for table.Lists.
func (r *reader) read(level int, validity bool, at, bytes int64) ([]byte, error) {
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
	f := r.lists.files.File(r.batch)
	if err := f.ReadFull(r.ctx, b, positions[r.batch]+at); err != nil {
		if gone := f.Content.Check(); gone != nil {
			err = gone
		}
		return nil, f.Named(err)
	}
	return b, nil
}
