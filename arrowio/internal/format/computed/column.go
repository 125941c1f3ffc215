package computed

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// spansAtOnce is about how many rows of single fields are read together, because the reader may keep
// all of them.
const spansAtOnce = 1 << 14

// compute reads the rows of a unit, all fields together, and returns a column for each field.
func (c *Contents) compute(ctx context.Context, unit int) ([]*buffers.Decoded, error) {
	began := time.Now()
	columns := make([]*column, len(c.fields))
	for i := range columns {
		columns[i] = newColumn(c.schema.Fields[i], c.fields[i], c.rows[unit])
	}
	first := c.metadata.Units[unit].Offset
	var spans []source.Span
	atOnce := int64(max(spansAtOnce/len(columns), 1))
	for from := int64(0); from < c.rows[unit]; from += atOnce {
		spans = spans[:0]
		for i := range columns {
			for k := from; k < min(from+atOnce, c.rows[unit]); k++ {
				spans = append(spans, source.Span{Field: i, Record: first + k})
			}
		}
		err := c.reader.Read(ctx, source.Draw{}, spans, func() error {
			for i := range spans {
				if err := columns[spans[i].Field].add(&spans[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := make([]*buffers.Decoded, len(columns))
	for i, column := range columns {
		out[i] = column.decoded()
		out[i].Unpacking = time.Since(began)
	}
	return out, nil
}

// column collects the rows of a field in a unit.
type column struct {
	field  source.Field
	stored *arrowtype.Field
	levels []buffers.Level
	lists  int   // outer levels with offsets
	ends   []int // by these levels: the elements of all lists so far
	each   int   // bytes of an element of the innermost of these lists; of a row if there are none
}

func newColumn(f source.Field, stored *arrowtype.Field, rows int64) *column {
	c := &column{field: f, stored: stored, levels: make([]buffers.Level, len(stored.Levels)), lists: stored.Lists(), each: f.RowBytes()}
	if f.Ragged == 0 && c.lists > 0 {
		c.each /= f.Shape[0]
	}
	c.ends = make([]int, c.lists)
	for n := range c.lists {
		c.levels[n].Data = make([]byte, 8, 8*(rows+1))
	}
	if c.lists == 0 {
		c.values().Data = make([]byte, 0, rows*int64(c.each))
	}
	return c
}

// values returns the last level.
func (c *column) values() *buffers.Level { return &c.levels[len(c.levels)-1] }

// add adds a row.
func (c *column) add(s *source.Span) error {
	if s.Null() {
		return c.addNull(s)
	}
	if err := c.check(s); err != nil {
		return err
	}
	switch {
	case c.lists == 1:
		c.addList(0, int64(len(s.Row)/c.each))
	case c.lists > 1:
		c.addList(0, int64(len(s.Lists[0])))
	case len(c.levels) > 1:
		c.levels[0].AddElement(true)
	}
	for n := 1; n < c.lists; n++ {
		for _, length := range s.Lists[n-1] {
			c.addList(n, length)
		}
	}
	c.addValues(s.Row, s.Nulls)
	return nil
}

// check returns an error for a row of another shape than the field has.
func (c *column) check(s *source.Span) error {
	if c.field.Lists && len(s.Row)%c.each == 0 {
		return nil
	}
	return c.field.CheckRow(s)
}

// addNull adds a null row.
func (c *column) addNull(s *source.Span) error {
	switch {
	case !c.field.Nullable:
		return status.Errorf(status.InvalidArgument, "arrowio", "field %q: record %d is null, but the schema has no nulls there", c.field.Name, s.Record).
			WithHint("make the field of the source nullable").With("field", c.field.Name).With("record", s.Record)
	case c.lists > 0:
		c.addList(0, -1)
	case len(c.levels) == 1:
		c.levels[0].Data = append(c.levels[0].Data, make([]byte, c.each)...)
		c.levels[0].AddElement(false)
	default:
		c.levels[0].AddElement(false)
		c.addValues(make([]byte, c.each), nil)
	}
	return nil
}

// addList adds a list to a level. A negative length stands for a null.
func (c *column) addList(n int, length int64) {
	l := &c.levels[n]
	l.AddElement(length >= 0)
	c.ends[n] += int(max(length, 0))
	l.Data = binary.LittleEndian.AppendUint64(l.Data, uint64(c.ends[n]))
}

// addValues adds elements to the last level. Nulls says which ones are null, or is nil.
func (c *column) addValues(row []byte, nulls []bool) {
	l := c.values()
	l.Data = append(l.Data, row...)
	count := int64(len(row) / c.field.Type.Size())
	if nulls == nil && l.Valid == nil {
		l.Length += count
		return
	}
	for i := range count {
		l.AddElement(nulls == nil || !nulls[i])
	}
}

// decoded returns the rows. It sets the lengths of the levels of fixed-size lists.
func (c *column) decoded() *buffers.Decoded {
	out := &buffers.Decoded{Levels: c.levels}
	for n := range c.levels {
		l := &c.levels[n]
		switch {
		case n == 0 || n == len(c.levels)-1 || n < c.lists:
		case n == c.lists:
			l.Length = int64(c.ends[n-1])
		default:
			l.Length = c.levels[n-1].Length * int64(c.stored.List(n-1).Length())
		}
		out.Bytes += int64(len(l.Valid) + len(l.Data))
	}
	if c.values().Data == nil {
		c.values().Data = []byte{}
	}
	out.Bytes = max(out.Bytes, 1)
	return out
}
