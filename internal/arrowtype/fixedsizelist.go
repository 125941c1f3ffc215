package arrowtype

import "github.com/meshfeed/meshfeed/internal/arrowmeta"

// fixedSizeListKind describes lists with a length that their type contains.
type fixedSizeListKind struct{}

func (fixedSizeListKind) matches(f *arrowmeta.Field) bool {
	return f.Type.Kind == arrowmeta.FixedSizeList
}

func (fixedSizeListKind) describe(d *description, f *arrowmeta.Field) string {
	return d.list(f, fixedSizeList(f.Type.ListSize))
}

// fixedSizeList is a level of lists that all have this length. It has no data
// buffer.
type fixedSizeList int

func (l fixedSizeList) Buffer() Buffer { return Buffer{} }

func (l fixedSizeList) Direct() bool { return true }

func (l fixedSizeList) Length() int { return int(l) }

func (l fixedSizeList) Children(start, count int64, _ []byte) (first, n int64, err error) {
	return start * int64(l), count * int64(l), nil
}

func (l fixedSizeList) Lengths(_ []byte, out []int64) error {
	for i := range out {
		out[i] = int64(l)
	}
	return nil
}
