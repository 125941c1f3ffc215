package arrowtype

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// viewKind describes views of text and binary values. The record batch has a view of each
// value, and any number of data buffers with the values that are too long for a view.
type viewKind struct{}

func (viewKind) matches(f *arrowmeta.Field) bool {
	return f.Type.Kind == arrowmeta.StringView || f.Type.Kind == arrowmeta.BinaryView
}

func (viewKind) describe(d *description, f *arrowmeta.Field) string {
	d.text, d.Logical = true, f.Type.String()
	d.lists++
	d.Shape = append(d.Shape, -1)
	return d.values(views{1}, dtype.Uint8)
}

// views is a level of views. Each element is a list of bytes, which lie in the view or in a
// data buffer.
type views struct{ fixed }

func (views) Buffer() Buffer { return Buffer{Bits: 8 * viewBytes} }

func (views) Direct() bool { return false }

// HasViews reports whether the elements of the last level are views.
func (f *Field) HasViews() bool {
	_, ok := f.Values().(views)
	return ok
}

// HasTexts reports whether each element of the last level is a text of its own, which lies
// in a dictionary or where a view says.
func (f *Field) HasTexts() bool { return f.HasViews() || f.TextDictionary() != nil }

// A view has the length of its value in 4 bytes, then the value, if it has up to 12 bytes.
// After the length of a longer value come its first 4 bytes, the number of its data buffer
// and its offset there.
const (
	viewBytes = 16
	inView    = 12
)

// View is a text or binary value of a column of views.
type View struct {
	Length int64
	Short  []byte // the value, if the view has it
	Buffer int    // the number of its data buffer otherwise
	Offset int64  // in the data buffer
}

// ViewAt returns element i of some views. It returns an error if the length is negative.
func ViewAt(data []byte, i int64) (View, error) {
	b := data[i*viewBytes : (i+1)*viewBytes]
	v := View{Length: Integer(b, 4)}
	switch {
	case v.Length < 0:
		return v, fmt.Errorf("its view has %d bytes", v.Length)
	case v.Length <= inView:
		v.Short = b[4 : 4+v.Length : 4+v.Length]
	default:
		v.Buffer, v.Offset = int(Integer(b[8:], 4)), Integer(b[12:], 4)
	}
	return v, nil
}

// Within returns an error unless the view has its value, or the value lies in one of
// the data buffers. Size returns the bytes of a data buffer.
func (v View) Within(buffers int, size func(buffer int) int64) error {
	switch {
	case v.Short != nil:
		return nil
	case v.Buffer < 0 || v.Buffer >= buffers:
		return fmt.Errorf("its view is of data buffer %d of %d", v.Buffer, buffers)
	case v.Offset < 0 || v.Offset > size(v.Buffer)-v.Length:
		return fmt.Errorf("its view is of %d bytes from byte %d on in a data buffer of %d", v.Length, v.Offset, size(v.Buffer))
	}
	return nil
}

// SetViews sets the values of a dictionary of text to the values of Len views. It returns
// an error for an invalid view.
func (d *Dictionary) SetViews(data []byte, buffers [][]byte) error {
	d.Texts = make([][]byte, d.Len)
	for i := range d.Texts {
		v, err := ViewAt(data, int64(i))
		if err == nil {
			err = v.Within(len(buffers), func(k int) int64 { return int64(len(buffers[k])) })
		}
		if err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
		if d.Texts[i] = v.Short; v.Short == nil {
			d.Texts[i] = buffers[v.Buffer][v.Offset : v.Offset+v.Length : v.Offset+v.Length]
		}
	}
	return nil
}
