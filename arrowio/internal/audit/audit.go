// Package audit compares the buffers of columns with what the format and the
// metadata promise about them: counts of nulls, offsets, indices, text.
//
// Package arrowmeta has checked that buffers lie in the file and are long enough.
// Wrong content is a [Fault]; any other error comes from reading.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Fault is something wrong with a column.
type Fault struct {
	Column string // with the names of its parents, joined by dots
	Text   string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("column %q: %s", f.Column, f.Text) }

// buffer is the content of a buffer, decompressed.
type buffer interface {
	io.ReaderAt
	Size() int64
}

// batch is a record batch or a dictionary batch.
type batch struct {
	*arrowmeta.RecordBatch

	// open returns the content of a buffer.
	open func(b arrowmeta.Buffer) (buffer, error)

	// dictionaryLen returns the number of values of a dictionary for this batch.
	dictionaryLen func(id int64) int64
}

// column is one column under audit.
type column struct {
	*arrowmeta.Column
	ctx   context.Context
	batch *batch
	path  string
	all   bool   // values that cannot be wrong are read, too
	nulls buffer // its validity bitmap; nil if no value is null
}

func (c *column) fault(format string, args ...any) error {
	return &Fault{c.path, fmt.Sprintf(format, args...)}
}

func (c *column) node() arrowmeta.Node { return c.batch.Node(c.Column) }

// child returns a child of the column.
func (c *column) child(i int) *column {
	child := &c.Children[i]
	return &column{ctx: c.ctx, batch: c.batch, Column: child, path: c.path + "." + child.Field.Name, all: c.all}
}

// childLen returns the number of values of a child. It returns math.MaxInt64 if the
// child cannot be located, because its type or one before it is unknown.
func (c *column) childLen(i int) int64 {
	if !c.Children[i].Located {
		return math.MaxInt64
	}
	return c.child(i).node().Length
}

// childNulls returns the number of nulls of a child, or 0 if it cannot be located.
func (c *column) childNulls(i int) int64 {
	if !c.Children[i].Located {
		return 0
	}
	return c.child(i).node().Nulls
}

// open returns the buffer with a number. It fails if the buffer is too short for
// the length of the column.
func (c *column) open(number int) (buffer, error) {
	b, err := c.openAny(number)
	if err != nil {
		return nil, err
	}
	need, ok := c.MinBytes(number, c.node().Length)
	if !ok || b.Size() < need {
		return nil, c.fault("buffer %d has %d bytes, too few for %d values", number, b.Size(), c.node().Length)
	}
	return b, nil
}

// openAny returns the buffer with a number. It does not check the size.
func (c *column) openAny(number int) (buffer, error) {
	b, err := c.batch.open(c.batch.Buffers(c.Column)[number])
	if fault, ok := errors.AsType[*Fault](err); ok {
		return nil, c.fault("buffer %d: %s", number, fault.Text)
	}
	return b, err
}

// data opens a buffer. Number 0 is the first after the validity bitmap.
func (c *column) data(number int) (buffer, error) {
	if c.Validity {
		number++
	}
	return c.open(number)
}

func (c *column) audit() error {
	if err := c.validity(); err != nil {
		return err
	}
	if err := c.values(); err != nil {
		return err
	}
	for i := range c.Children {
		if !c.Children[i].Located {
			continue
		}
		if err := c.child(i).audit(); err != nil {
			return err
		}
	}
	return nil
}

// values audits the column's own buffers.
func (c *column) values() error {
	if c.Field.Dictionary != nil {
		return c.indices()
	}
	switch t := &c.Field.Type; t.Kind {
	case arrowmeta.Null, arrowmeta.Struct, arrowmeta.FixedSizeList:
		return nil
	case arrowmeta.String, arrowmeta.Binary:
		return c.text(4)
	case arrowmeta.LargeString, arrowmeta.LargeBinary:
		return c.text(8)
	case arrowmeta.List:
		return c.lists(4)
	case arrowmeta.LargeList:
		return c.lists(8)
	case arrowmeta.Map:
		return c.entries()
	case arrowmeta.ListView:
		return c.listViews(4)
	case arrowmeta.LargeListView:
		return c.listViews(8)
	case arrowmeta.StringView, arrowmeta.BinaryView:
		return c.views()
	case arrowmeta.Union:
		return c.union()
	case arrowmeta.RunEndEncoded:
		return c.runs()
	}
	return c.plain()
}

// plain checks the size of a buffer of values that cannot be wrong. If all is true,
// it also reads them, which fails if the disk does.
func (c *column) plain() error {
	b, err := c.data(0)
	if err != nil || !c.all {
		return err
	}
	return c.pieces(b, 1, b.Size(), func(int64, []byte) error { return nil })
}
