package tfrecord

import (
	"encoding/binary"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// column describes a feature as a column of Arrow. Total is the number of records of all files.
func (f *Feature) column(total int64) arrowmeta.Field {
	item := arrowmeta.Field{Name: "item", Type: arrowmeta.Type{Kind: arrowmeta.LargeBinary}}
	switch f.Kind {
	case floatList:
		item.Type = arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 32}
	case int64List:
		item.Type = arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 64, Signed: true}
	}
	switch {
	case f.Min == 1 && f.Max == 1:
	case f.Min == f.Max && f.Min > 0 && f.Records == total && f.Kind != bytesList: // a null would take as much memory as a row
		item = arrowmeta.Field{Type: arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: int(f.Min), Children: []arrowmeta.Field{item}}}
	default:
		item = arrowmeta.Field{Type: arrowmeta.Type{Kind: arrowmeta.LargeList, Children: []arrowmeta.Field{item}}}
	}
	item.Name, item.Nullable = f.Name, f.Records < total
	return item
}

// column collects the values of a feature in a unit.
type column struct {
	kind   kind
	size   int64 // the values of a record; -1 if records differ
	full   bool  // no record may be null
	levels []buffers.Level
}

// newColumn returns a column without values.
func newColumn(f *arrowmeta.Field, k kind) *column {
	c := &column{kind: k, size: 1, full: !f.Nullable}
	switch f.Type.Kind {
	case arrowmeta.FixedSizeList:
		c.size, c.levels = int64(f.Type.ListSize), []buffers.Level{{}}
	case arrowmeta.LargeList:
		c.size, c.levels = -1, []buffers.Level{{Data: make([]byte, 8)}}
	}
	if k == bytesList {
		c.levels = append(c.levels, buffers.Level{Data: make([]byte, 8)})
	}
	c.levels = append(c.levels, buffers.Level{Data: []byte{}})
	return c
}

// add adds the values of a record. Records before it without values are null. After false, which reports
// values that do not fit, the column is of no use.
func (c *column) add(record int64, v *value) bool {
	if v.kind != c.kind || c.levels[0].Length > record || !c.fill(record) {
		return false
	}
	n, last := int64(0), &c.levels[len(c.levels)-1]
	ok := v.each(func(b []byte) {
		last.Data = append(last.Data, b...)
		if c.kind == floatList {
			n += int64(len(b) / 4)
			return
		}
		n++
		last.Length = int64(len(last.Data))
		c.text(true)
	}, func(number uint64) {
		last.Data = binary.LittleEndian.AppendUint64(last.Data, number)
		n++
	})
	switch {
	case !ok || c.size >= 0 && n != c.size:
		return false
	case len(c.levels) == 1:
		last.AddElement(true)
	case c.kind != bytesList:
		last.Length += n
	}
	c.list(true)
	return true
}

// text ends a text, whose bytes were added.
func (c *column) text(valid bool) {
	texts := &c.levels[len(c.levels)-2]
	texts.Data = binary.LittleEndian.AppendUint64(texts.Data, uint64(c.levels[len(c.levels)-1].Length))
	texts.AddElement(valid)
}

// list ends the list of a record, if the column has lists.
func (c *column) list(valid bool) {
	switch {
	case c.size < 0:
		c.levels[0].Data = binary.LittleEndian.AppendUint64(c.levels[0].Data, uint64(c.levels[1].Length))
		c.levels[0].AddElement(valid)
	case c.size != 1:
		c.levels[0].AddElement(valid)
	}
}

// fill adds nulls up to a record. False reports that there may be none.
func (c *column) fill(record int64) bool {
	for c.levels[0].Length < record {
		if c.full {
			return false
		}
		switch {
		case c.size < 0:
			c.list(false)
		case c.kind == bytesList:
			c.text(false)
		default:
			width := 4
			if c.kind == int64List {
				width = 8
			}
			c.levels[0].Data = append(c.levels[0].Data, make([]byte, width)...)
			c.levels[0].AddElement(false)
		}
	}
	return true
}

// decoded returns the values.
func (c *column) decoded() *buffers.Decoded {
	out := &buffers.Decoded{Levels: c.levels, Bytes: 1}
	for i := range c.levels {
		out.Bytes += int64(len(c.levels[i].Valid) + len(c.levels[i].Data))
	}
	return out
}
