package arrowtype

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// textKind describes text and binary values: lists of bytes of varying length. Arrow stores
// the offsets and the bytes of a column in one array.
type textKind struct{}

func (textKind) matches(f *arrowmeta.Field) bool { return textWidth(&f.Type) > 0 }

// textWidth returns the bytes of an offset of text, 0 for another type.
func textWidth(t *arrowmeta.Type) int {
	switch t.Kind {
	case arrowmeta.String, arrowmeta.Binary:
		return 4
	case arrowmeta.LargeString, arrowmeta.LargeBinary:
		return 8
	}
	return 0
}

func (textKind) describe(d *description, f *arrowmeta.Field) string {
	d.text, d.Logical = true, f.Type.String()
	d.lists++
	d.Shape = append(d.Shape, -1)
	d.Levels = append(d.Levels, &list{textWidth(&f.Type), -1})
	return d.values(inline{1}, dtype.Uint8)
}

// inline is the level of the bytes of text. Its buffer belongs to the array that has the
// offsets, so it has no nulls of its own.
type inline struct{ fixed }

// HasInline reports whether the array of a level also has the buffer of the next level.
func (f *Field) HasInline(level int) bool { return level+1 < len(f.Levels) && f.Inline(level+1) }

// SetText sets the values of a dictionary of text. Offsets has one more than Len offsets of
// width bytes. The error names invalid offsets.
func (d *Dictionary) SetText(offsets, values []byte, width int) error {
	l := list{width, -1}
	lengths := make([]int64, d.Len)
	if err := l.Lengths(offsets, lengths); err != nil {
		return err
	}
	if last := l.offset(offsets, int(d.Len)); last > int64(len(values)) {
		return fmt.Errorf("its text ends at byte %d of %d", last, len(values))
	}
	d.Texts = make([][]byte, d.Len)
	at := l.offset(offsets, 0)
	for i, n := range lengths {
		d.Texts[i] = values[at : at+n : at+n]
		at += n
	}
	return nil
}

// Inline reports whether the buffer of a level belongs to the array of the level above.
func (f *Field) Inline(level int) bool {
	_, ok := f.Levels[level].(inline)
	return ok
}
