package arrowtype

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// dictionaryKind describes indices into a dictionary of rows.
type dictionaryKind struct{}

func (dictionaryKind) matches(f *arrowmeta.Field) bool { return f.Dictionary != nil }

func (dictionaryKind) describe(d *description, f *arrowmeta.Field) string {
	plain := *f
	plain.Dictionary = nil
	values := description{Field: &Field{Name: f.Name, Shape: []int{}}}
	reason := values.field(&plain)
	index, ok := f.Dictionary.Index.DType()
	switch {
	case reason != "":
		return reason
	case !ok || !index.IsInteger():
		return "its dictionary has indices of type " + f.Dictionary.Index.String() + "; store plain values"
	case values.text && len(values.Shape) == 1:
		d.text, d.Type, d.Logical = true, values.Type, f.TypeString()
		d.lists++
		d.Shape = append(d.Shape, -1)
		d.Levels = append(d.Levels, &TextDictionary{dictionary{width: index.Size(), signed: f.Dictionary.Index.Signed, values: values.Field, size: 1}})
		return ""
	case slices.Contains(values.Shape, -1):
		return "its dictionary holds lists of variable length; store plain values"
	case values.Dictionary() != nil:
		return "its dictionary holds lists of another dictionary's values; store plain values"
	case values.Type == dtype.Bool:
		return "its dictionary holds booleans; store plain values"
	}
	d.Type, d.Logical = values.Type, values.Logical
	d.Shape = append(d.Shape, values.Shape...)
	d.Levels = append(d.Levels, &dictionary{width: index.Size(), signed: f.Dictionary.Index.Signed, values: values.Field, size: int64(values.RowBytes())})
	return ""
}

// dictionary is a level of indices into a dictionary.
type dictionary struct {
	width  int  // bytes of an index
	signed bool // an index may be negative, which is out of range
	values *Field
	size   int64 // bytes of a row of values
}

// Dictionary holds the values of a dictionary as rows, one after the other.
type Dictionary struct {
	From   int32 // first record batch that uses it
	Len    int64
	Values []byte
	Texts  [][]byte // the values, if they are text; Values is empty then
}

// Append returns the dictionary with the values of another one after its own. The result
// may share memory with both.
func (d *Dictionary) Append(next *Dictionary) *Dictionary {
	return &Dictionary{From: next.From, Len: d.Len + next.Len, Values: append(d.Values, next.Values...), Texts: append(d.Texts, next.Texts...)}
}

func (l *dictionary) Buffer() Buffer { return Buffer{Bits: 8 * int64(l.width)} }

func (l *dictionary) Direct() bool { return false }

func (l *dictionary) Size() int64 { return 8 * l.size }

func (l *dictionary) Row(d *Data, count int64) ([]byte, error) {
	if count > 1 {
		return nil, nil
	}
	return l.value(d, 0)
}

func (l *dictionary) Copy(dst []byte, d *Data, count int64) error {
	for i := range int(count) {
		row, err := l.value(d, i)
		if err != nil {
			return err
		}
		copy(dst[int64(i)*l.size:], row)
	}
	return nil
}

// value returns the row that an index stands for.
func (l *dictionary) value(d *Data, i int) ([]byte, error) {
	index, err := l.index(d, i)
	if err != nil {
		return nil, err
	}
	return d.Dictionary.Values[index*l.size : (index+1)*l.size], nil
}

// index returns an index that lies in the dictionary.
func (l *dictionary) index(d *Data, i int) (int64, error) {
	index := Integer(d.Bytes[i*l.width:], l.width)
	if !l.signed && l.width < 8 {
		index &= 1<<(8*l.width) - 1
	}
	if index < 0 || index >= d.Dictionary.Len {
		return 0, fmt.Errorf("its index %d lies outside the dictionary of %d values", index, d.Dictionary.Len)
	}
	return index, nil
}
