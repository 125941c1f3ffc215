// Package levels turns the repetition and definition levels of Parquet into the offsets
// and validity bitmaps of Arrow ("Dremel: Interactive Analysis of Web-Scale Datasets",
// VLDB 2010, section 4; the format's page "Nested Encoding").
//
// Every entry of a column chunk has two levels. The repetition level tells which list the
// entry continues: 0 begins a row, and level i+1 adds an element to the current list i.
// The definition level tells how much of the path to the value is there. The largest
// stands for a value; with a smaller one, a node of the path is null, or a list is empty.
//
// Levels are stored in runs. A [Builder] uses whole runs where it can: a column without
// nulls and lists costs nothing per row, and lists of numbers cost about a bit operation
// per element.
package levels

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
)

// Shape holds the offsets and bitmaps of a column.
type Shape struct {
	Lists   []List // one for each repeated node, from the outermost
	Valid   Bitmap // of the values
	Outer   Bitmap // of the first nodes of the path; nil unless the path has two nodes, none of them repeated
	Values  int64  // slots of values, null or not
	Present int64  // values that are not null, which the pages hold
}

// List is a level of lists. List i has the elements Offsets[i] to Offsets[i+1].
type List struct {
	Offsets []int64 // one more than there are lists
	Valid   Bitmap
}

// Len returns the number of lists.
func (l *List) Len() int64 { return int64(len(l.Offsets)) - 1 }

// Builder builds a shape page by page.
type Builder struct {
	shape   Shape
	element []uint32 // by list: the definition level from which on an element is there
	rows    int64
	max     uint32 // definition level of a value
	outer   uint32 // definition level from which on the first of two nodes is there; 0 if it always is
	last    uint32 // definition level of the last entry
	scratch [2][]uint32
}

// NewBuilder returns the builder for a leaf.
func NewBuilder(leaf *parquet.Leaf) *Builder {
	b := &Builder{max: uint32(leaf.MaxDefinition())}
	for _, n := range leaf.Nodes {
		if n.Repetition == parquet.Repeated {
			b.element = append(b.element, uint32(n.Definition))
			b.shape.Lists = append(b.shape.Lists, List{})
		}
	}
	if nodes := leaf.Nodes; len(nodes) == 2 && len(b.element) == 0 {
		b.outer = uint32(nodes[0].Definition)
	}
	return b
}

// Widths returns the numbers of bits of a repetition and of a definition level.
func (b *Builder) Widths() (repetition, definition int) {
	return bits.Len(uint(len(b.element))), bits.Len32(b.max)
}

// Page adds the levels of a page, which has n entries. It returns the number of values
// that the page holds. A column whose levels have no bits needs no runs.
func (b *Builder) Page(repetitions, definitions *encoding.Runs, n int) (present int64, err error) {
	before := b.shape.Present
	r := segment{runs: repetitions, fixed: len(b.element) == 0, scratch: &b.scratch[0]}
	d := segment{runs: definitions, fixed: b.max == 0, scratch: &b.scratch[1], bitmap: r.fixed && b.max == 1 && b.outer == 0}
	for n > 0 {
		if err := r.fill(n); err != nil {
			return 0, fmt.Errorf("repetition levels: %w", err)
		}
		if err := d.fill(n); err != nil {
			return 0, fmt.Errorf("definition levels: %w", err)
		}
		m := min(r.left, d.left)
		if err := b.add(&r, &d, m); err != nil {
			return 0, err
		}
		r.skip(m)
		d.skip(m)
		n -= m
	}
	return b.shape.Present - before, nil
}

// Finish returns the shape, if it has this number of rows.
func (b *Builder) Finish(rows int64) (*Shape, error) {
	if b.rows != rows {
		return nil, fmt.Errorf("%d rows instead of %d", b.rows, rows)
	}
	below := b.shape.Values
	for i := len(b.shape.Lists) - 1; i >= 0; i-- {
		l := &b.shape.Lists[i]
		l.Offsets = append(l.Offsets, below)
		below = l.Len()
	}
	return &b.shape, nil
}

// segment is a part of a run, of levels that were not added yet.
type segment struct {
	runs    *encoding.Runs
	fixed   bool // there are no bits, so that all levels are 0
	bitmap  bool // a packed run is a part of a bitmap and used as a whole
	left    int
	same    bool // all levels are value
	value   uint32
	packed  []byte    // unless same
	levels  []uint32  // of packed, unless it is a bitmap
	scratch *[]uint32 // for levels
}

// fill reads the next run, unless a part of one is left.
func (s *segment) fill(n int) error {
	if s.left > 0 {
		return nil
	}
	if s.fixed {
		s.left, s.same = n, true
		return nil
	}
	run, err := s.runs.Next()
	if err != nil {
		return err
	}
	s.left, s.value, s.same, s.packed = run.Count, run.Value, run.Packed == nil, run.Packed
	if !s.same && !s.bitmap {
		s.unpack()
	}
	return nil
}

// unpack sets levels to those of a packed run.
func (s *segment) unpack() {
	if cap(*s.scratch) < s.left {
		*s.scratch = make([]uint32, s.left)
	}
	s.levels = (*s.scratch)[:s.left]
	encoding.Unpack(s.levels, s.packed, s.runs.Width())
}

func (s *segment) skip(n int) {
	if s.left -= n; !s.same && !s.bitmap {
		s.levels = s.levels[n:]
	}
}

// add adds n entries, which both segments have.
func (b *Builder) add(r, d *segment, n int) error {
	if d.same && d.value == b.max {
		switch {
		case len(b.element) == 0:
			b.values(n)
			return nil
		case b.inside():
			return b.elements(r, n)
		}
	}
	if len(b.element) == 0 {
		return b.flat(d, n)
	}
	for i := 0; i < n; i++ {
		rep, def := r.value, d.value
		if !r.same {
			rep = r.levels[i]
		}
		if !d.same {
			def = d.levels[i]
			if def == b.max && b.inside() {
				part := segment{same: r.same, value: r.value}
				if !r.same {
					part.levels = r.levels[i:]
				}
				count := leading(d.levels[i:n], b.max)
				if err := b.elements(&part, count); err != nil {
					return err
				}
				i += count - 1
				continue
			}
		}
		if err := b.entry(rep, def); err != nil {
			return err
		}
	}
	return nil
}

// inside reports whether the last entry is an element of a list of the innermost level.
func (b *Builder) inside() bool { return b.last >= b.element[len(b.element)-1] }

// leading returns how many levels equal value before the first that does not.
func leading(levels []uint32, value uint32) int {
	for i, level := range levels {
		if level != value {
			return i
		}
	}
	return len(levels)
}

// values adds n values of a column without lists.
func (b *Builder) values(n int) {
	b.rows += int64(n)
	b.shape.Valid.add(b.shape.Values, true, n)
	b.shape.Outer.add(b.shape.Values, true, n)
	b.shape.Values += int64(n)
	b.shape.Present += int64(n)
	b.last = b.max
}

// bitmap adds a packed run of n entries of a column without lists. Its levels are 0 for a
// null and 1 for a value, as in the bitmap of Arrow.
func (b *Builder) bitmap(packed []byte, n int) {
	present := 0
	for i := 0; i < n; i += 8 {
		present += bits.OnesCount8(packed[i>>3] & byte(1<<min(8, n-i)-1))
	}
	if present == n {
		b.values(n)
		return
	}
	b.shape.Valid.pack(b.shape.Values, packed, n)
	b.rows += int64(n)
	b.shape.Values += int64(n)
	b.shape.Present += int64(present)
}

// flat adds n entries, some of which may be null, of a column without lists.
func (b *Builder) flat(d *segment, n int) error {
	if !d.same && d.bitmap {
		b.bitmap(d.packed, n)
		return nil
	}
	if !d.same && !slices.ContainsFunc(d.levels[:n], func(level uint32) bool { return level != b.max }) {
		b.values(n)
		return nil
	}
	if d.same && d.value > b.max {
		return fmt.Errorf("definition level %d, of at most %d", d.value, b.max)
	}
	at := b.shape.Values
	b.shape.Valid.add(at, false, n)
	for i := 0; i < n && !d.same; i++ {
		if level := d.levels[i]; level == b.max {
			b.shape.Valid[(at+int64(i))>>3] |= 1 << ((at + int64(i)) & 7)
			b.shape.Present++
		} else if level > b.max {
			return fmt.Errorf("definition level %d, of at most %d", level, b.max)
		}
	}
	if b.outer > 0 {
		b.outers(d, n)
	}
	b.rows += int64(n)
	b.shape.Values += int64(n)
	return nil
}

// outers sets which of n entries have the first node of their path.
func (b *Builder) outers(d *segment, n int) {
	at := b.shape.Values
	if d.same {
		b.shape.Outer.add(at, d.value >= b.outer, n)
		return
	}
	for i, level := range d.levels[:n] {
		b.shape.Outer.add(at+int64(i), level >= b.outer, 1)
	}
}

// elements adds n values of lists. The entry before is an element of the innermost lists
// too, so that each value may continue its lists.
func (b *Builder) elements(r *segment, n int) error {
	at, depth := b.shape.Values, uint32(len(b.element))
	if r.same && r.value > depth {
		return fmt.Errorf("repetition level %d, of at most %d", r.value, depth)
	}
	for i := 0; i < n && !(r.same && r.value == depth); i++ {
		rep := r.value
		if !r.same {
			rep = r.levels[i]
		}
		if rep == depth {
			continue
		}
		if rep > depth {
			return fmt.Errorf("repetition level %d, of at most %d", rep, depth)
		}
		b.shape.Values = at + int64(i)
		b.begin(rep)
	}
	b.shape.Valid.add(at, true, n)
	b.shape.Values = at + int64(n)
	b.shape.Present += int64(n)
	b.last = b.max
	return nil
}

// begin begins a list with elements at the levels from rep on.
func (b *Builder) begin(rep uint32) {
	if rep == 0 {
		b.rows++
	}
	for i := int(rep); i < len(b.shape.Lists); i++ {
		l := &b.shape.Lists[i]
		if l.Valid != nil {
			l.Valid.add(int64(len(l.Offsets)), true, 1)
		}
		l.Offsets = append(l.Offsets, b.elementsOf(i))
	}
}

// entry adds one entry.
func (b *Builder) entry(rep, def uint32) error {
	switch {
	case rep > uint32(len(b.element)):
		return fmt.Errorf("repetition level %d, of at most %d", rep, len(b.element))
	case def > b.max:
		return fmt.Errorf("definition level %d, of at most %d", def, b.max)
	case rep == 0:
		b.rows++
	case b.rows == 0:
		return fmt.Errorf("the first repetition level is %d", rep)
	case def < b.element[rep-1] || b.last < b.element[rep-1]:
		return fmt.Errorf("repetition level %d continues a list that has no elements", rep)
	}
	b.last = def
	for i := range b.shape.Lists {
		l := &b.shape.Lists[i]
		if rep <= uint32(i) { // the entry begins a list
			l.Valid.add(int64(len(l.Offsets)), def+1 >= b.element[i], 1)
			l.Offsets = append(l.Offsets, b.elementsOf(i))
		}
		if def < b.element[i] { // null or empty: no element begins
			return nil
		}
	}
	b.shape.Valid.add(b.shape.Values, def == b.max, 1)
	b.shape.Values++
	if def == b.max {
		b.shape.Present++
	}
	return nil
}

// elementsOf returns the number of elements of all lists of a level so far.
func (b *Builder) elementsOf(i int) int64 {
	if i+1 < len(b.shape.Lists) {
		return int64(len(b.shape.Lists[i+1].Offsets))
	}
	return b.shape.Values
}
