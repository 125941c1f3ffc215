package arrowmeta

import "math"

// Version is the version of the metadata. Between the two, unions and run-end
// encoded columns lost their validity bitmap.
type Version int

// The versions that are read; the numbers are those of MetadataVersion.
const (
	V4 Version = 3 // Arrow 0.8 to 0.17
	V5 Version = 4 // Arrow 1.0 and later
)

// Column tells which nodes and buffers of a record batch belong to a field. A
// batch holds all of them in two lists, depth first: a field's own, then its
// children's.
type Column struct {
	Field    *Field
	Children []Column // of the field's children; none where it is dictionary-encoded
	Located  bool     // false for an unknown type and every column after one
	Validity bool     // the first buffer is the validity bitmap

	node    int       // number of the node
	buffer  int       // number of the first buffer, without the data buffers of views
	buffers int       // number of buffers, likewise
	view    bool      // data buffers follow
	views   int       // view columns before this one
	fixed   [2]buflen // the buffers after the validity bitmap
}

// buflen says how long a buffer must be: bits for each value, and for extra
// values more.
type buflen struct{ bits, extra int64 }

// Stored gives the type of what the record batches hold for the column: the
// field's, or that of the indices where it is dictionary-encoded.
func (c *Column) Stored() *Type {
	if c.Field.Dictionary != nil {
		return &c.Field.Dictionary.Index
	}
	return &c.Field.Type
}

// MinBytes gives the least number of bytes of the column's buffer with the
// given number, decompressed, if the column has length values of which some
// are null. Buffers whose size depends on other values have none: 0. It is
// false where the size is beyond any file.
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

// resolve sets what follows from the stored type alone.
func (c *Column) resolve(v Version) {
	t := c.Stored()
	var own []buflen
	switch t.Kind {
	case Null, Struct, FixedSizeList, RunEndEncoded:
	case List, Map:
		own = []buflen{{32, 1}}
	case LargeList:
		own = []buflen{{64, 1}}
	case Binary, String:
		own = []buflen{{32, 1}, {}}
	case LargeBinary, LargeString:
		own = []buflen{{64, 1}, {}}
	case ListView:
		own = []buflen{{32, 0}, {32, 0}}
	case LargeListView:
		own = []buflen{{64, 0}, {64, 0}}
	case BinaryView, StringView:
		own, c.view = []buflen{{128, 0}}, true
	case Union:
		own = []buflen{{8, 0}, {32, 0}}
		if !t.Dense {
			own = own[:1]
		}
	default:
		bits, _ := t.Bits()
		own = []buflen{{bits, 0}}
	}
	c.Validity = t.Kind.hasValidity(v)
	c.buffers = copy(c.fixed[:], own)
	if c.Validity {
		c.buffers++
	}
}

// hasValidity says whether the first buffer of a column is a validity bitmap.
func (k Kind) hasValidity(v Version) bool {
	if v == V4 {
		return k != Null
	}
	return k != Null && k != Union && k != RunEndEncoded
}

// layout is the plan of a record batch: what each column has in it.
type layout struct {
	version   Version
	columns   []Column  // one per field of the schema
	flat      []*Column // every located column, in the order of the nodes
	buffers   int       // total without the data buffers of views
	views     int       // view columns
	open      bool      // an unknown type was met: the totals are not known
	versioned bool      // the version matters
}

func newLayout(fields []Field, v Version) *layout {
	l := &layout{version: v}
	l.columns = l.add(fields)
	return l
}

func (l *layout) add(fields []Field) []Column {
	columns := make([]Column, len(fields))
	for i := range fields {
		c := &columns[i]
		c.Field = &fields[i]
		kind := c.Stored().Kind
		l.open = l.open || !kind.Known()
		l.versioned = l.versioned || kind.hasValidity(V4) != kind.hasValidity(V5)
		if !l.open {
			l.place(c)
		}
		if c.Field.Dictionary == nil {
			c.Children = l.add(c.Field.Type.Children)
		}
	}
	return columns
}

// place gives the column the next node and buffers.
func (l *layout) place(c *Column) {
	c.resolve(l.version)
	c.Located, c.node, c.buffer, c.views = true, len(l.flat), l.buffers, l.views
	l.flat = append(l.flat, c)
	l.buffers += c.buffers
	if c.view {
		l.views++
	}
}
