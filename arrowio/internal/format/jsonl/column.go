package jsonl

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// column collects the values of a key in a unit.
type column struct {
	key    *key
	levels []buffers.Level
}

// newColumn returns a column without values. Lists and text have offsets of 64 bits.
func newColumn(k *key) *column {
	c := &column{key: k}
	for f := &k.form; ; f = f.item {
		if f == nil {
			f = &form{}
		}
		c.levels = append(c.levels, buffers.Level{Data: []byte{}})
		last := &c.levels[len(c.levels)-1]
		if f.kind != list && f.kind != text {
			return c
		}
		last.Data = make([]byte, 8)
		if f.kind == text {
			c.levels = append(c.levels, buffers.Level{Data: []byte{}})
			return c
		}
	}
}

// add adds the value of a record. Records before it without a value get nulls.
func (c *column) add(record int64, v jsontext.Value) error {
	if c.levels[0].Length > record {
		return twice(c.key.name)
	}
	c.fill(record)
	return c.value(0, &c.key.form, v)
}

// fill adds nulls up to a record.
func (c *column) fill(record int64) {
	for c.levels[0].Length < record {
		_ = c.value(0, &c.key.form, jsontext.Value("null")) // every form has nulls
	}
}

// value adds a value to a level. After an error, the column is of no use.
func (c *column) value(n int, f *form, v jsontext.Value) error {
	l, kind := &c.levels[n], v.Kind()
	null := kind == jsontext.Null
	fits := null
	switch f.kind {
	case list:
		fits = null || kind == jsontext.List
		for element := range v.Elements() {
			item := f.item
			if item == nil {
				item = &form{}
			}
			if err := c.value(n+1, item, element); err != nil {
				return err
			}
		}
		l.Data = binary.LittleEndian.AppendUint64(l.Data, uint64(c.levels[n+1].Length))
	case text:
		bytes := &c.levels[n+1]
		if kind == jsontext.String {
			bytes.Data, fits = v.AppendText(bytes.Data), true
		}
		bytes.Length = int64(len(bytes.Data))
		l.Data = binary.LittleEndian.AppendUint64(l.Data, uint64(bytes.Length))
	case boolean:
		fits = null || kind == jsontext.Boolean
		if l.Length%8 == 0 {
			l.Data = append(l.Data, 0)
		}
		if string(v) == "true" {
			l.Data[l.Length/8] |= 1 << (l.Length % 8)
		}
	case integer:
		number, ok := v.Int()
		fits = null || ok
		l.Data = binary.LittleEndian.AppendUint64(l.Data, uint64(number))
	case float:
		number := 0.0
		if kind == jsontext.Number {
			var err error
			number, err = strconv.ParseFloat(string(v), 64)
			fits = err == nil
		}
		l.Data = binary.LittleEndian.AppendUint64(l.Data, math.Float64bits(number))
	}
	if !fits {
		return misfit(c.key.name, f.kind, v)
	}
	l.AddElement(!null)
	return nil
}

// decoded returns the values of a number of records.
func (c *column) decoded(records int64) *buffers.Decoded {
	c.fill(records)
	out := &buffers.Decoded{Levels: c.levels, Bytes: 1}
	for i := range c.levels {
		out.Bytes += int64(len(c.levels[i].Valid) + len(c.levels[i].Data))
	}
	return out
}
