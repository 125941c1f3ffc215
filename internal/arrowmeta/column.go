package arrowmeta

import "math"

// version is the version of the metadata, with the numbers of the enum
// MetadataVersion. Since v5, unions and run-end encoded columns have no validity
// bitmap.
type version int

const (
	v4 version = 3 // Arrow 0.8 to 0.17
	v5 version = 4 // Arrow 1.0 and later
)

// Column selects the nodes and buffers of a field in a record batch. A batch has
// all of them in two lists, depth first: a field's own, then its children's.
type Column struct {
	Field    *Field
	Children []Column // children of the field; none if it is dictionary-encoded
	Located  bool     // false for an unknown type and every column after one
	Validity bool     // the first buffer is the validity bitmap

	node    int           // index of the node
	buffer  int           // index of the first buffer, not counting data buffers of views
	buffers int           // number of buffers, counted likewise
	view    bool          // data buffers follow; the record batch has their number
	views   int           // view columns before this one
	fixed   [2]bufferSize // sizes of the buffers after the validity bitmap
}

// bufferSize is the least size of a buffer: bits for each value and for extra
// values more.
type bufferSize struct{ bits, extra int64 }

// Stored returns the type of the values in the column's buffers: the field's type, or the
// type of the indices if it is dictionary-encoded.
func (c *Column) Stored() *Type {
	if c.Field.Dictionary != nil {
		return &c.Field.Dictionary.Index
	}
	return &c.Field.Type
}

// MinBytes returns the least size in bytes of one of the column's buffers, decompressed,
// for length values, some of them null. It is 0 for a buffer with a size that depends on
// the content of others, and false for a size beyond any file.
func (c *Column) MinBytes(buffer int, length int64) (int64, bool) {
	if length <= 0 {
		return 0, true
	}
	if c.Validity {
		if buffer--; buffer < 0 {
			return length/8 + min(length%8, 1), true
		}
	}
	if buffer >= len(c.fixed) || c.fixed[buffer].bits == 0 {
		return 0, true
	}
	w := c.fixed[buffer]
	if length > (math.MaxInt64-7)/w.bits-w.extra {
		return 0, false
	}
	return ((length+w.extra)*w.bits + 7) / 8, true
}

// resolve sets the fields that follow from the stored type alone.
func (c *Column) resolve(v version) {
	t := c.Stored()
	var own []bufferSize
	switch t.Kind {
	case Null, Struct, FixedSizeList, RunEndEncoded:
	case List, Map:
		own = []bufferSize{{32, 1}}
	case LargeList:
		own = []bufferSize{{64, 1}}
	case Binary, String:
		own = []bufferSize{{32, 1}, {}}
	case LargeBinary, LargeString:
		own = []bufferSize{{64, 1}, {}}
	case ListView:
		own = []bufferSize{{32, 0}, {32, 0}}
	case LargeListView:
		own = []bufferSize{{64, 0}, {64, 0}}
	case BinaryView, StringView:
		own, c.view = []bufferSize{{128, 0}}, true
	case Union:
		own = []bufferSize{{8, 0}, {32, 0}}
		if !t.Dense {
			own = own[:1]
		}
	case FixedSizeBinary:
		own = []bufferSize{{8 * int64(t.ByteWidth), 0}}
	default:
		own = []bufferSize{{int64(t.BitWidth), 0}}
	}
	c.Validity = t.Kind.hasValidity(v)
	c.buffers = copy(c.fixed[:], own)
	if c.Validity {
		c.buffers++
	}
}

// hasValidity reports whether the first buffer of a column is a validity bitmap.
func (k Kind) hasValidity(v version) bool {
	if v == v4 {
		return k != Null
	}
	return k != Null && k != Union && k != RunEndEncoded
}

// layout maps each column to its nodes and buffers in a record batch.
type layout struct {
	version   version
	columns   []Column  // one per field of the schema
	flat      []*Column // every located column, in the order of the nodes
	buffers   int       // total without the data buffers of views
	views     int       // view columns
	open      bool      // there is an unknown type, so that the totals are not known
	versioned bool      // the nodes and buffers depend on the version
}

func newLayout(fields []Field, v version) *layout {
	l := &layout{version: v}
	l.columns = l.add(fields)
	return l
}

// add returns the columns of fields, with their children, and locates them depth
// first.
func (l *layout) add(fields []Field) []Column {
	columns := make([]Column, len(fields))
	for i := range fields {
		c := &columns[i]
		c.Field = &fields[i]
		kind := c.Stored().Kind
		l.open = l.open || !kind.Known()
		l.versioned = l.versioned || kind.hasValidity(v4) != kind.hasValidity(v5)
		if !l.open {
			l.locate(c)
		}
		if c.Field.Dictionary == nil {
			c.Children = l.add(c.Field.Type.Children)
		}
	}
	return columns
}

// locate assigns the next node and buffers to the column.
func (l *layout) locate(c *Column) {
	c.resolve(l.version)
	c.Located, c.node, c.buffer, c.views = true, len(l.flat), l.buffers, l.views
	l.flat = append(l.flat, c)
	l.buffers += c.buffers
	if c.view {
		l.views++
	}
}
