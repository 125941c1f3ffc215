package arrowtype

import (
	"encoding/binary"
	"fmt"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// listKind describes lists and large lists. Arrow permits different lengths in one
// column. A field needs lists of one length, which is a dimension of its row shape.
type listKind struct{}

func (listKind) matches(f *arrowmeta.Field) bool {
	return f.Type.Kind == arrowmeta.List || f.Type.Kind == arrowmeta.LargeList
}

func (listKind) describe(d *description, f *arrowmeta.Field) string {
	width := 4
	if f.Type.Kind == arrowmeta.LargeList {
		width = 8
	}
	return d.list(f, &list{width, -1})
}

// list is a level of lists with offsets.
type list struct {
	width  int // bytes of an offset
	length int // elements in each list; -1 if it is not known yet
}

func (l *list) Buffer() Buffer { return Buffer{Bits: 8 * int64(l.width), Extra: 1} }

func (l *list) Direct() bool { return false }

func (l *list) Length() int { return l.length }

func (l *list) Children(_, count int64, offsets []byte) (first, n int64, err error) {
	first = l.offset(offsets, 0)
	n = l.offset(offsets, int(count)) - first
	if l.length >= 0 {
		if i := l.uneven(offsets); i >= 0 {
			err = &LengthError{int64(i), l.offset(offsets, i+1) - l.offset(offsets, i)}
		}
	}
	return first, n, err
}

func (l *list) Lengths(offsets []byte, out []int64) error {
	from := l.offset(offsets, 0)
	if from < 0 {
		return fmt.Errorf("its list begins at element %d", from)
	}
	for i := range out {
		to := l.offset(offsets, i+1)
		if to < from {
			return fmt.Errorf("its list goes from element %d to %d", from, to)
		}
		out[i], from = to-from, to
	}
	return nil
}

func (l *list) offset(offsets []byte, i int) int64 { return Integer(offsets[i*l.width:], l.width) }

// uneven returns the index of the first list of another length, or -1.
func (l *list) uneven(offsets []byte) int {
	b, n := offsets, uint32(l.length)
	if l.width == 4 {
		word := binary.LittleEndian.Uint32
		for ; len(b) >= 20; b = b[16:] {
			o0, o1, o2, o3, o4 := word(b), word(b[4:]), word(b[8:]), word(b[12:]), word(b[16:])
			if ((o1-o0)^n)|((o2-o1)^n)|((o3-o2)^n)|((o4-o3)^n) != 0 {
				break
			}
		}
	}
	for ; len(b) >= 2*l.width; b = b[l.width:] {
		if l.offset(b, 1)-l.offset(b, 0) != int64(l.length) {
			return (len(offsets) - len(b)) / l.width
		}
	}
	return -1
}
