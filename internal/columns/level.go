package columns

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// Kind is the layout of a level.
type Kind uint8

// The kinds of levels.
const (
	Values    Kind = iota // the last level: numbers or bits, in Data
	Text                  // the last level: text or bytes, in Data from offset to offset
	List                  // lists, which are entries of the next level from offset to offset
	FixedList             // lists of Size entries of the next level
)

// Level is an Arrow array. [Levels] describes it, [Reader.Read] fills it.
type Level struct {
	Kind Kind
	Type dtype.Type // type of Values: neither bfloat16 nor complex
	UTF8 bool       // for Text: it is text, not bytes
	Wide bool       // for Text and List: offsets have 64 bits, not 32
	Size int        // for FixedList

	Length   int    // number of entries
	Nulls    int    // how many entries are null
	Validity []byte // a bit for each entry, which is 0 for null; nil if none is null
	Offsets  []byte // for Text and List: Length + 1 offsets, little-endian
	Data     []byte // for Values and Text
}

// Levels describes the levels of a field, without entries. If wide is false, only lists
// with such a type have offsets of 64 bits, such as "large_string".
func Levels(f source.Field, wide bool) []Level {
	var levels []Level
	text := f.IsText() || f.IsBytes()
	lists := f.Ragged
	if text {
		lists--
	}
	for range lists {
		levels = append(levels, Level{Kind: List, Wide: wide})
	}
	if text {
		return append(levels, Level{Kind: Text, UTF8: f.IsText(), Wide: wide || strings.Contains(f.Logical, "large_")})
	}
	for _, n := range f.Shape {
		levels = append(levels, Level{Kind: FixedList, Size: n})
	}
	switch f.Type {
	case dtype.BFloat16:
		return append(levels, Level{Type: dtype.Float32})
	case dtype.Complex64:
		return append(levels, Level{Kind: FixedList, Size: 2}, Level{Type: dtype.Float32})
	case dtype.Complex128:
		return append(levels, Level{Kind: FixedList, Size: 2}, Level{Type: dtype.Float64})
	}
	return append(levels, Level{Type: f.Type})
}

// Batch holds rows of some fields.
type Batch struct {
	Rows    int
	Columns []Column // in the order of the reader's fields
}

// Column holds rows of a field.
type Column struct {
	Field  source.Field
	Levels []Level // from the rows to their values
}

// Free returns all buffers to the memory that they are from. The batch is then empty.
func (b *Batch) Free(m Memory) {
	for _, c := range b.Columns {
		for _, l := range c.Levels {
			for _, buffer := range [][]byte{l.Validity, l.Offsets, l.Data} {
				if buffer != nil {
					m.Free(buffer)
				}
			}
		}
	}
	*b = Batch{}
}

// Memory provides the buffers of batches.
type Memory interface {
	// Resize returns a buffer of the given size, which is not 0, with the contents
	// of b as far as they fit. It takes b, also if it fails: then it frees b. A nil
	// b has no contents. The bytes beyond them may have any value.
	Resize(b []byte, size int) ([]byte, error)

	// Free takes a buffer, or the beginning of one.
	Free(b []byte)
}

// Heap is memory that Go's garbage collector frees.
type Heap struct{}

// Resize implements Memory.
func (Heap) Resize(b []byte, size int) ([]byte, error) {
	if size <= cap(b) {
		return b[:size], nil
	}
	out := make([]byte, size)
	copy(out, b)
	return out, nil
}

// Free implements Memory.
func (Heap) Free([]byte) {}
