package arrowtype

import (
	"encoding/binary"
	"fmt"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// kind is one kind of Arrow type.
type kind interface {
	// matches reports whether f is of this kind.
	matches(f *arrowmeta.Field) bool

	// describe adds the levels of f to d, or returns the reason, with a remedy,
	// why its values cannot be elements of an array.
	describe(d *description, f *arrowmeta.Field) (reason string)
}

// kinds lists all kinds. The first that matches describes a field; the last
// matches every field.
var kinds = []kind{dictionaryKind{}, fixedSizeListKind{}, listKind{}, memberKind{}, textKind{}, viewKind{}, fixedSizeBinaryKind{}, booleanKind{}, numberKind{}, refusedKind{}}

// Buffer is the size of a level's data buffer: Bits for each element and for
// Extra elements more. Bits is 0 if the level has no such buffer.
type Buffer struct{ Bits, Extra int64 }

// Bytes returns the range of the buffer that holds count elements from element
// start on.
func (b Buffer) Bytes(start, count int64) (from, length int64) {
	bit := start * b.Bits
	from = bit >> 3
	return from, (bit+(count+b.Extra)*b.Bits+7)>>3 - from
}

// Level is one Arrow array of a column. It is a [List] or [Values].
type Level interface {
	// Buffer returns the size of the data buffer: offsets, indices or values.
	Buffer() Buffer

	// Direct reports whether the position of an element follows from its
	// number, so that no buffer has to be read to find it.
	Direct() bool
}

// List is a level with lists of elements of the next level as elements.
type List interface {
	Level

	// Length returns the number of elements in each list, -1 if it is not
	// known yet.
	Length() int

	// Children returns the elements of count lists, from list start on, which
	// lie one after the other in the next level. Data holds the offsets of
	// these lists, if the level has a buffer. The error is a [LengthError] if
	// a list has another length than Length; the elements are returned all the same.
	Children(start, count int64, data []byte) (first, n int64, err error)

	// Lengths writes the length of each list to out. It returns an error if the
	// offsets in data are negative, or decrease.
	Lengths(data []byte, out []int64) error
}

// Values is the last level of a column.
type Values interface {
	Level

	// Size returns the number of bits of a stored value.
	Size() int64

	// Row returns count values without copying them, or nil if the elements of an
	// array need other bytes.
	Row(d *Data, count int64) ([]byte, error)

	// Copy writes count values to dst, as elements of an array.
	Copy(dst []byte, d *Data, count int64) error
}

// Data holds consecutive values of a record batch.
type Data struct {
	Bytes      []byte
	Bit        int64 // where the first value begins in Bytes, for booleans
	Dictionary *Dictionary
}

// LengthError is the error for a list of another length than the rows need.
type LengthError struct {
	List   int64 // index among the lists of the call
	Length int64
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("list %d has %d elements", e.List, e.Length)
}

// Integer reads a signed little-endian integer of width bytes.
func Integer(b []byte, width int) int64 {
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}
