package columns

import (
	"encoding/binary"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// builder collects the rows of a column.
type builder struct {
	field  source.Field
	levels []levelBuilder
	failed *error // the first error of the memory of the batch; nothing is added after it
}

// levelBuilder collects the entries of a level.
type levelBuilder struct {
	Level
	valid   validity
	offsets buffer
	data    buffer
	bits    bits  // in place of data, for booleans
	end     int64 // the last offset
}

func newBuilder(f source.Field, wide bool, m Memory, failed *error) *builder {
	b := &builder{field: f, failed: failed}
	empty := buffer{memory: m, failed: failed}
	for _, level := range Levels(f, wide) {
		l := levelBuilder{Level: level, offsets: empty, data: empty}
		l.bits.buffer, l.valid.buffer = empty, empty
		b.levels = append(b.levels, l)
	}
	return b
}

// lengths returns the lengths of the entries of each level of lists that a row adds. The
// row is not null. Level 0 has one entry.
func (b *builder) lengths(s *source.Span, d int, one *[1]int64) []int64 {
	if d > 0 {
		return s.Lists[d-1]
	}
	if one[0] = int64(len(s.Row) / max(1, b.field.RowBytes())); b.field.Ragged > 1 {
		one[0] = int64(len(s.Lists[0]))
	}
	return one[:]
}

// bytes returns how much memory a row takes, apart from bitmaps.
func (b *builder) bytes(s *source.Span) int {
	if b.field.Ragged == 0 {
		return b.field.RowBytes()
	}
	n := len(s.Row) + 4
	for _, list := range s.Lists {
		n += 4 * len(list)
	}
	return n
}

// check returns an error if a row is too long for the offsets of a level, or has another
// shape than its field. No offset is larger than most, if it has 32 bits.
func (b *builder) check(s *source.Span, most int64) error {
	if err := b.field.CheckRow(s); err != nil || s.Null() {
		return err
	}
	for d := range b.field.Ragged {
		l := &b.levels[d]
		if l.Wide {
			continue
		}
		n := int64(len(s.Row) / max(1, b.field.RowBytes())) // entries of the next level
		if d < b.field.Ragged-1 {
			n = int64(len(s.Lists[d]))
		}
		if n > most-l.end {
			return status.Errorf(status.OutOfRange, "columns", "field %q: record %d adds %d elements to %d, but offsets of 32 bits count %d at most", b.field.Name, s.Record, n, l.end, most).
				WithHint("take fewer records, or make the row shorter").With("field", b.field.Name).With("record", s.Record)
		}
	}
	return nil
}

// reserve makes memory for the values of rows.
func (b *builder) reserve(rows []source.Span) {
	n, values := 0, &b.levels[len(b.levels)-1]
	for i := range rows {
		n += len(rows[i].Row)
	}
	switch b.field.Type {
	case dtype.Bool:
		return
	case dtype.BFloat16:
		n *= 2
	}
	if n > 0 {
		values.data.extend(n)
		values.data.n = 0
	}
}

// add adds a row.
func (b *builder) add(s *source.Span) {
	switch {
	case b.field.Ragged == 0:
		b.addFixed(s)
		return
	case s.Null():
		b.levels[0].addLists([]int64{-1})
		return
	}
	var one [1]int64
	for d := range b.field.Ragged {
		b.levels[d].addLists(b.lengths(s, d, &one))
	}
	if last := &b.levels[b.field.Ragged-1]; last.Kind == Text {
		last.data.add(s.Row)
		return
	}
	b.addElements(b.field.Ragged, len(s.Row)/max(1, b.field.RowBytes()), s.Row, s.Nulls)
}

// addFixed adds the row of a fixed field. The values of a null row are 0.
func (b *builder) addFixed(s *source.Span) {
	if !s.Null() {
		b.addElements(0, 1, s.Row, s.Nulls)
		return
	}
	n := 1
	for d := range b.levels {
		l := &b.levels[d]
		if l.Length += n; d == 0 {
			l.valid.addNull()
		} else {
			l.valid.add(n)
		}
		switch {
		case l.Kind == FixedList:
			n *= l.Size
		case l.Type == dtype.Bool:
			l.bits.extend(n)
		default:
			clear(l.data.extend(n * l.Type.Size()))
		}
	}
}

// addLists adds entries of Text or List. The length of a null entry is -1.
func (l *levelBuilder) addLists(lengths []int64) {
	if l.Length == 0 && l.offsets.n == 0 {
		l.offsets.addInt(0, l.Wide)
	}
	for _, n := range lengths {
		if n < 0 {
			l.valid.addNull()
		} else {
			l.end += n
			l.valid.add(1)
		}
		l.offsets.addInt(l.end, l.Wide)
	}
	l.Length += len(lengths)
}

// addElements adds n entries to level d, which is not a level of lists with offsets, and to
// the levels below it.
func (b *builder) addElements(d, n int, row []byte, nulls []bool) {
	each := len(nulls) / max(n, 1) // values of an entry
	single := len(b.levels) - 1    // the level of single values
	if b.field.Type == dtype.Complex64 || b.field.Type == dtype.Complex128 {
		single--
	}
	for at := d; at < len(b.levels); at++ {
		l := &b.levels[at]
		l.Length += n
		switch at {
		case single:
			l.valid.addFrom(nulls, 1, n)
		case d:
			l.valid.addFrom(nulls, each, n)
		default:
			l.valid.add(n)
		}
		if l.Kind == FixedList {
			n *= l.Size
		}
	}
	b.levels[len(b.levels)-1].addValues(b.field.Type, row)
}

// addValues adds values with elements stored like elements of type t.
func (l *levelBuilder) addValues(t dtype.Type, row []byte) {
	switch t {
	case dtype.Bool:
		l.bits.pack(row)
	case dtype.BFloat16:
		widen(l.data.extend(2*len(row)), row)
	default:
		l.data.add(row)
	}
}

// widen converts bfloat16 to float32, which has 16 more bits in the fraction.
func widen(to, from []byte) {
	for i := 0; 2*i < len(to); i += 2 {
		binary.LittleEndian.PutUint32(to[2*i:], uint32(binary.LittleEndian.Uint16(from[i:]))<<16)
	}
}

// column returns the collected rows.
func (b *builder) column() Column {
	c := Column{Field: b.field, Levels: make([]Level, len(b.levels))}
	for i := range b.levels {
		l := &b.levels[i]
		if l.Kind == Text || l.Kind == List {
			l.addLists(nil) // so that there is a first offset
		}
		l.Nulls, l.Validity, l.Offsets = l.valid.nulls, l.valid.used(), l.offsets.used()
		if l.Data = l.data.used(); l.Type == dtype.Bool {
			l.Data = l.bits.used()
		}
		c.Levels[i] = l.Level
	}
	return c
}

// free frees all buffers.
func (b *builder) free() {
	for i := range b.levels {
		l := &b.levels[i]
		l.valid.free()
		l.offsets.free()
		l.data.free()
		l.bits.free()
	}
}
