package arrowtype

import (
	"errors"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// ListsOfNulls describes a column of lists with values of the null type, as rows of another
// field. ok is false for any other column.
func ListsOfNulls(f *arrowmeta.Field, other *Field) (*Field, bool) {
	out := &Field{Name: f.Name, Type: other.Type, Logical: other.Logical}
	for ; !IsNull(f); f = &f.Type.Children[0] {
		switch f.Type.Kind {
		case arrowmeta.List:
			out.Levels = append(out.Levels, &list{4, -1})
		case arrowmeta.LargeList:
			out.Levels = append(out.Levels, &list{8, -1})
		case arrowmeta.FixedSizeList:
			out.Levels = append(out.Levels, fixedSizeList(f.Type.ListSize))
		default:
			return nil, false
		}
	}
	out.Levels = append(out.Levels, &nulls{})
	out.Like(other)
	return out, true
}

// Null reports whether all elements of a level are null by its type.
func (f *Field) Null(level int) bool {
	_, ok := f.Levels[level].(*nulls)
	return ok
}

// nulls is a level of nulls, which has no buffers. Each stands for elements of an array.
type nulls struct{ bits int64 }

var errNull = errors.New("a null has no value")

func (*nulls) Buffer() Buffer { return Buffer{} }

func (*nulls) Direct() bool { return true }

func (l *nulls) Size() int64 { return l.bits }

func (*nulls) Row(*Data, int64) ([]byte, error) { return nil, errNull }

func (*nulls) Copy([]byte, *Data, int64) error { return errNull }
