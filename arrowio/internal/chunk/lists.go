package chunk

import (
	"fmt"

	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// List is a level of lists.
type List = levels.List

// FixLists checks that the lists of a level have size elements each. Arrow's lists of a
// fixed size have elements also where a list is null, but Parquet stores none. So
// FixLists adds elements that are null to these lists.
func (c *Column) FixLists(level int, size int64) error {
	l := &c.Lists[level]
	nulls := false
	for i := range l.Len() {
		n := l.Offsets[i+1] - l.Offsets[i]
		valid := l.Valid.Get(i)
		if valid && n != size {
			return fmt.Errorf("list %d has %d elements instead of %d", i, n, size)
		}
		nulls = nulls || !valid && size > 0
	}
	if nulls {
		return c.pad(level, size)
	}
	return nil
}

// pad adds size elements to every null list of a level.
func (c *Column) pad(level int, size int64) error {
	l := &c.Lists[level]
	lists := l.Len()
	if size > maxPadded/max(1, lists) {
		return fmt.Errorf("%d lists of %d elements are too many", lists, size)
	}
	from := make([]int64, 0, lists*size) // by element: where it was; -1 for a new one
	for i := range lists {
		for k := range size {
			if l.Valid.Get(i) {
				from = append(from, l.Offsets[i]+k)
			} else {
				from = append(from, -1)
			}
		}
		l.Offsets[i] = i * size
	}
	l.Offsets[lists] = lists * size
	if level+1 < len(c.Lists) {
		c.Lists[level+1] = movedLists(&c.Lists[level+1], from)
		return nil
	}
	return c.moveValues(from)
}

// maxPadded bounds the elements of lists that pad makes.
const maxPadded = 1 << 28

// movedLists returns lists in a new order. New ones are null. Their elements stay where
// they are.
func movedLists(l *List, from []int64) List {
	out := List{Offsets: make([]int64, 0, len(from)+1), Valid: make(levels.Bitmap, (len(from)+7)/8)}
	end := l.Offsets[0]
	for i, k := range from {
		out.Offsets = append(out.Offsets, end)
		if k < 0 {
			continue
		}
		end = l.Offsets[k+1]
		if l.Valid.Get(k) {
			out.Valid[i>>3] |= 1 << (i & 7)
		}
	}
	out.Offsets = append(out.Offsets, end)
	return out
}

// moveValues puts values in a new order. New ones are null.
func (c *Column) moveValues(from []int64) error {
	valid := make(levels.Bitmap, (len(from)+7)/8)
	width := int64(0)
	if c.Values > 0 {
		width = int64(len(c.Fixed)) / c.Values
	}
	fixed := make([]byte, int64(len(from))*width)
	for i, k := range from {
		if k < 0 {
			continue
		}
		copy(fixed[int64(i)*width:], c.Fixed[k*width:(k+1)*width])
		if c.Valid.Get(k) {
			valid[i>>3] |= 1 << (i & 7)
		}
	}
	if c.Bytes.Offsets != nil {
		return fmt.Errorf("null lists of text in lists of a fixed size are not read")
	}
	c.Fixed, c.Valid, c.Values = fixed, valid, int64(len(from))
	return nil
}
