package format

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Run is a unit of a file that stores one record after the other, and that has no index.
type Run struct {
	End     int64 // the first byte after it
	Records int64
	Number  int64 // of the entries up to End, as errors count them: records, or lines of a text
}

// MaxRunRecords bounds the records of a run, because each takes memory for every column.
const MaxRunRecords = 1 << 15

// Runs implements the methods of Contents for files that are divided into runs. A run is decoded once for
// all columns.
type Runs struct {
	Plain
	List   []Run
	Passes Passes

	As      string // the encoding of the units
	NullsOf func(column int) buffers.Nulls

	// PerByte bounds what a byte of a run becomes in memory.
	PerByte int64
}

// perValue bounds the memory of a value that a record does not have. Buffers that grow have up to twice
// their bytes.
const perValue = 16

// SetRuns sets the runs, and the units of the metadata.
func (c *Runs) SetRuns(list []Run) {
	c.List = list
	at := int64(0)
	for _, r := range list {
		c.Facts.Units = append(c.Facts.Units, resident.Extent{Offset: at, Length: r.End - at})
		at = r.End
	}
}

// Before returns the number of the entries before a unit.
func (c *Runs) Before(unit int) int64 {
	if unit == 0 {
		return 0
	}
	return c.List[unit-1].Number
}

// Scan implements Contents. It reads nothing.
func (c *Runs) Scan(_ context.Context, first, last int, visit func(i int, u Unit) error) error {
	return Visit(first, last, func(i int) Unit {
		return Encoded{Records: c.List[i].Records, Elements: c.Facts.Units[i].Length, As: c.As, NullsOf: c.NullsOf}
	}, visit)
}

// Decoding implements Contents.
func (c *Runs) Decoding(_ context.Context, unit, column int, _ *arrowtype.Field) (Decoding, error) {
	memory := c.PerByte*c.Facts.Units[unit].Length + perValue*c.List[unit].Records*int64(len(c.Facts.Located))
	return Decoding{Memory: memory, Run: func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
		return c.Passes.Column(ctx, unit, column, lists)
	}}, nil
}

// Verify implements Contents. It decodes all runs.
func (c *Runs) Verify(ctx context.Context, _ []int, progress func(bytes int64)) error {
	for unit := range c.List {
		if _, err := c.Passes.Decode(ctx, unit); err != nil {
			return err
		}
		progress(c.Facts.Units[unit].Length)
	}
	return nil
}

// InEntry adds the number of an entry, such as a line, to an error.
func InEntry(kind string, number int64, err error) error {
	e, ok := err.(*status.Error)
	if !ok {
		return fmt.Errorf("%s %d: %w", kind, number, err)
	}
	e.Msg = fmt.Sprintf("%s %d: %s", kind, number, e.Msg)
	return e.With(kind, number)
}

// Recounted returns the error for entries that are not the entries of the index.
func Recounted(format string, args ...any) error {
	return status.Errorf(status.DataLoss, "arrowio", format, args...).
		WithHint("do not write to files that are open; if nothing writes to the file, clear the cache: meshfeed cache clear")
}

// AppendRuns appends runs to b, to keep them.
func AppendRuns(b []byte, list []Run) []byte {
	for _, r := range list {
		for _, n := range []int64{r.End, r.Records, r.Number} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	return b
}

// ReadRuns returns the runs of a file of size bytes. Longest bounds the bytes of a run. ok is false if the
// runs do not fit the file.
func ReadRuns(b []byte, size, longest int64) (list []Run, ok bool) {
	before := Run{}
	for ; len(b) >= 24; b = b[24:] {
		number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
		r := Run{number(0), number(1), number(2)}
		length, entries := r.End-before.End, r.Number-before.Number
		if length <= 0 || length > longest || entries < 0 || r.Records < 0 || r.Records > min(entries, MaxRunRecords) {
			return nil, false
		}
		list, before = append(list, r), r
	}
	return list, len(b) == 0 && len(list) > 0 && before.End == size
}
