// Package buffers describes the Arrow buffers of a column: where they lie in files or in
// memory ([Column]), or the bytes that a decoding has made of them ([Decoded]).
//
// Package arrowtype describes how the rows of a column are stored, as a chain of levels: from
// the column to its values, such as list → fixed-size list → float32. Each level has a
// validity bitmap and at most one buffer of offsets, indices or values. Only the last one may
// have more: the data buffers of views.
package buffers

import (
	"sort"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Column holds the positions of a field's buffers: one Plane per level.
type Column struct {
	Planes       []Plane
	Dictionaries []*arrowtype.Dictionary // if the column has indices, in the order of From
	Memory       []unsafe.Pointer        // keeps Go memory alive, if positions are addresses in it
	Variants     []*Variant              // by record batch: how its file stores the field; nil if all files store it as the table says
}

// Variant is another way of some files to store a field, such as text with longer offsets.
type Variant struct {
	Field  *arrowtype.Field
	Column *Column // nil if all rows are null
}

// Stored returns how the file of a record batch stores a field: as the field and the column
// say, or in another way. The result has no column if all rows are null.
func (c *Column) Stored(f *arrowtype.Field, batch int32) (*arrowtype.Field, *Column) {
	if c.Variants == nil || c.Variants[batch] == nil {
		return f, c
	}
	return c.Variants[batch].Field, c.Variants[batch].Column
}

// Plane holds the positions of one level's buffers, with an entry per record
// batch. A position is an offset in the batch's file, or an address if the
// table lies in memory.
type Plane struct {
	Valid  []int64 // validity bitmap, -1 for a batch without nulls here; nil if no batch has any
	Data   []int64 // offsets, indices or values; nil for a level without data buffer
	Length []int64 // elements of the level; nil if the metadata guarantee that there are enough
	Shift  []int64 // elements to skip at the front of the buffers; nil for none

	Buffers [][]Extent // data buffers of views; nil for a level without views
}

// Extent is the position of a data buffer of views, and its size in bytes.
type Extent struct{ At, Bytes int64 }

// ShiftOf returns the elements to skip in a record batch.
func (p *Plane) ShiftOf(batch int32) int64 {
	if p.Shift == nil {
		return 0
	}
	return p.Shift[batch]
}

// ValidOf returns the position of a batch's validity bitmap, -1 for none.
func (p *Plane) ValidOf(batch int32) int64 {
	if p.Valid == nil {
		return -1
	}
	return p.Valid[batch]
}

// DictionaryOf returns the dictionary that a record batch uses: the last that
// begins at or before it.
func (c *Column) DictionaryOf(batch int32) *arrowtype.Dictionary {
	i := sort.Search(len(c.Dictionaries), func(i int) bool { return c.Dictionaries[i].From > batch })
	if i == 0 {
		return &arrowtype.Dictionary{}
	}
	return c.Dictionaries[i-1]
}

// Nulls returns whether some record batch has nulls.
func (c *Column) Nulls() (n Nulls) {
	for i := range c.Planes {
		n.May = n.May || c.Planes[i].Valid != nil
	}
	return Nulls{n.May, c.Planes[0].Valid != nil}
}

// Decoded holds the buffers of a field in one record batch, by level. Text has two levels:
// its offsets and validity, then its bytes. The Length of the second is the number of bytes.
type Decoded struct {
	Levels []Level
	Bytes  int64

	Reading, Unpacking time.Duration // how long the storage and the decompression took
}

// Level holds the buffers of a level.
type Level struct {
	Valid  []byte // nil without nulls
	Data   []byte // nil for a level without data buffer
	Length int64

	Buffers [][]byte // data buffers of views; nil if values were left out
}

// AddElement adds an element to a level that is being built, which is valid or null. A level without
// nulls has no bitmap. The caller adds the data.
func (l *Level) AddElement(valid bool) {
	if !valid && l.Valid == nil {
		l.Valid = make([]byte, (l.Length+7)/8)
		for i := range l.Valid {
			l.Valid[i] = 0xff
		}
	}
	if at := l.Length; l.Valid != nil {
		if at%8 == 0 {
			l.Valid = append(l.Valid, 0)
		}
		bit := byte(1) << (at % 8)
		l.Valid[at/8] &^= bit
		if valid {
			l.Valid[at/8] |= bit
		}
	}
	l.Length++
}

// Nulls says what metadata tell about the nulls of a column.
type Nulls struct {
	May bool // metadata do not exclude nulls of rows, or within rows
	Has bool // some row is null
}

// Or returns what is known of two parts of a column together.
func (n Nulls) Or(m Nulls) Nulls { return Nulls{n.May || m.May, n.Has || m.Has} }
