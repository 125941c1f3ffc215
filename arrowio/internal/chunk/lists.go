package chunk

import (
	"fmt"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// List is a level of lists.
type List = levels.List

// FixLists checks that the lists of a level have size elements each. Arrow's lists of a
// fixed size have elements also where a list is null, but Parquet stores none. So
// FixLists adds elements that are null to these lists. The column takes at most limit bytes.
func (c *Column) FixLists(level int, size, limit int64) error {
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
		return c.pad(level, size, limit)
	}
	return nil
}

// pad adds size elements to every null list of a level.
func (c *Column) pad(level int, size, limit int64) error {
	l := &c.Lists[level]
	if each := int64(c.Width + 9); size > limit/each/l.Len() {
		return tooLarge("%d lists of %d elements take more than %d bytes", l.Len(), size, limit)
	}
	if level+1 < len(c.Lists) {
		c.Lists[level+1] = padLists(l, &c.Lists[level+1], size)
	} else if c.Bytes.Offsets != nil {
		return parquet.Unsupported("null lists of text in lists of a fixed size are not read")
	} else {
		c.padValues(l, size)
	}
	for i := range l.Offsets {
		l.Offsets[i] = int64(i) * size
	}
	return nil
}

// padLists returns the lists that are elements of l, with size empty lists, which are
// null, for each null list of l.
func padLists(l, elements *List, size int64) List {
	n := l.Len() * size
	out := List{Offsets: make([]int64, 1, n+1), Valid: make(levels.Bitmap, (n+7)/8)}
	end := elements.Offsets[0]
	out.Offsets[0] = end
	for i := range l.Len() {
		for k := range size {
			if from := l.Offsets[i] + k; l.Valid.Get(i) {
				end = elements.Offsets[from+1]
				out.Valid.Set(i*size+k, elements.Valid.Get(from))
			}
			out.Offsets = append(out.Offsets, end)
		}
	}
	return out
}

// padValues adds size nulls for each null list of l.
func (c *Column) padValues(l *List, size int64) {
	n, w := l.Len()*size, int64(c.Width)
	valid := make(levels.Bitmap, (n+7)/8)
	var fixed []byte
	if c.Fixed != nil { // not of DecodeShape
		fixed = make([]byte, n*w)
	}
	for i := range l.Len() {
		if !l.Valid.Get(i) {
			continue
		}
		from, to := l.Offsets[i], i*size
		for k := range size {
			valid.Set(to+k, c.Valid.Get(from+k))
		}
		if fixed != nil {
			copy(fixed[to*w:(to+size)*w], c.Fixed[from*w:])
		}
	}
	c.Fixed, c.Valid, c.Values = fixed, valid, n
}
