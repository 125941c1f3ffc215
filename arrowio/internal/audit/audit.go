// Package audit compares the buffers of columns with what the format and the
// metadata promise about them: counts of nulls, offsets, indices, text.
//
// Metadata alone make sure that buffers lie in the file and are long enough:
// that is arrowmeta's part. What is wrong with the content is a [Fault]; an
// error of another kind is the reader's.
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
	Column string // with the names of its parents, joined by points
	Text   string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("column %q: %s", f.Column, f.Text) }

// Buffer is the content of a buffer, decompressed.
type Buffer interface {
	io.ReaderAt
	Size() int64
}

// Batch is a record batch, or a dictionary batch, whose columns are audited.
type Batch struct {
	Header *arrowmeta.RecordBatch

	// Open gives the content of a buffer.
	Open func(b arrowmeta.Buffer) (Buffer, error)

	// DictionaryLen gives how many values a dictionary has for this batch.
	DictionaryLen func(id int64) int64
}

// Column audits a located column and its children. If all is false, numbers and
// other values of which none can be wrong are not read.
func (b *Batch) Column(ctx context.Context, c *arrowmeta.Column, all bool) error {
	return (&column{ctx: ctx, batch: b, Column: c, path: c.Field.Name, all: all}).audit()
}

// column is one column under audit.
type column struct {
	*arrowmeta.Column
	ctx   context.Context
	batch *Batch
	path  string
	all   bool   // values that need no check are read, too
	nulls Buffer // its validity bitmap; nil where no value is null
}

func (c *column) fault(format string, args ...any) error {
	return &Fault{c.path, fmt.Sprintf(format, args...)}
}

func (c *column) node() arrowmeta.Node { return c.batch.Header.Node(c.Column) }

// child gives a child of the column.
func (c *column) child(i int) *column {
	child := &c.Children[i]
	return &column{ctx: c.ctx, batch: c.batch, Column: child, path: c.path + "." + child.Field.Name, all: c.all}
}

// childLen gives how many values a child has; any number where its type is not
// known, so that it cannot be found.
func (c *column) childLen(i int) int64 {
	if !c.Children[i].Located {
		return math.MaxInt64
	}
	return c.child(i).node().Length
}

// childNulls gives how many values of a child are null, likewise none.
func (c *column) childNulls(i int) int64 {
	if !c.Children[i].Located {
		return 0
	}
	return c.child(i).node().Nulls
}

// open gives a buffer by its number, which must hold what the length of the
// column needs.
func (c *column) open(number int) (Buffer, error) {
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

// openAny gives a buffer by its number, however short it is.
func (c *column) openAny(number int) (Buffer, error) {
	b, err := c.batch.Open(c.batch.Header.Buffers(c.Column)[number])
	var fault *Fault
	if errors.As(err, &fault) {
		return nil, c.fault("buffer %d: %s", number, fault.Text)
	}
	return b, err
}

// data opens the buffers behind the validity bitmap, from the first.
func (c *column) data(number int) (Buffer, error) {
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

// plain reads values of which all are good: that they can be read is enough.
func (c *column) plain() error {
	b, err := c.data(0)
	if err != nil || !c.all {
		return err
	}
	return c.pieces(b, 1, b.Size(), func(int64, []byte) error { return nil })
}
