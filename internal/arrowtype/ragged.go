package arrowtype

import "strings"

// MakeRagged makes all list levels down to the last one of variable length ragged, because
// their lists differ in length. Shape becomes the shape of an element of that level.
func (f *Field) MakeRagged() {
	for n := range f.Levels {
		if l, ok := f.Levels[n].(*list); ok {
			l.length = -1
		}
	}
	f.Ragged = f.LastOffsets() + 1 - f.Structs()
	if f.HasTexts() {
		f.Ragged = len(f.Levels) - f.Structs()
	}
	f.Shape = append([]int{}, f.described[f.Ragged:]...)
}

// Lists returns the number of outer levels with lists that may have any length when rows are
// read. These are the ragged levels, or one level that is stored with offsets and is the
// first dimension of the shape.
func (f *Field) Lists() int {
	if l, listed := f.Levels[0].(*list); listed && f.Ragged == 0 && l.length == f.Shape[0] {
		return 1
	}
	return f.Ragged
}

// Why returns why the rows of a ragged field are not rows of an array, with a remedy. It is
// empty for a field that the type alone does not make ragged.
func (f *Field) Why() string {
	switch {
	case f.Ragged == 0:
		return ""
	case f.TextDictionary() != nil:
		return "its dictionary holds text; store the indices instead"
	case strings.Contains(f.Logical, "string"):
		return "text has no fixed size; store token ids as a fixed-size list of integers"
	}
	return "binary values have no fixed size; store decoded elements as a fixed-size list, or bytes as fixed-size binary"
}

// TextDictionary returns the last level if it holds indices into a dictionary of text,
// otherwise nil.
func (f *Field) TextDictionary() *TextDictionary {
	d, _ := f.Values().(*TextDictionary)
	return d
}

// TextDictionary is a level of indices into a dictionary of text. Each element is a list of
// bytes, which lie in the dictionary.
type TextDictionary struct{ dictionary }

// Text returns the bytes that index i stands for.
func (l *TextDictionary) Text(d *Data, i int64) ([]byte, error) {
	index, err := l.index(d, int(i))
	if err != nil {
		return nil, err
	}
	return d.Dictionary.Texts[index], nil
}
