package arrowtype

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// Adjacent describes rows of several plain rows that lie one after the other. Row i consists of
// the plain rows from number i on, as many as the first dimension of the shape, so rows overlap.
func Adjacent(name string, typ dtype.Type, shape []int) *Field {
	f := Plain(name, typ, shape)
	f.Levels = slices.Clone(f.Levels)
	f.Levels[0] = overlapping{f.Levels[0].(fixedSizeList)}
	return f
}

// overlapping is a level of lists of one length, each of which begins one element after the list
// before it.
type overlapping struct{ fixedSizeList }

// Children returns the elements of one list.
func (l overlapping) Children(start, _ int64, _ []byte) (first, n int64, err error) {
	return start, int64(l.Length()), nil
}
