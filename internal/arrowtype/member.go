package arrowtype

import "github.com/meshfeed/meshfeed/internal/arrowmeta"

// memberKind describes structs of bytes and a path. Hugging Face's datasets library stores
// images, audio and other encoded files in them. Their rows are the bytes: a row is null if
// its struct is. The path is left out.
type memberKind struct{}

func (memberKind) matches(f *arrowmeta.Field) bool { return Member(f) >= 0 }

func (memberKind) describe(d *description, f *arrowmeta.Field) string {
	if d.lists > 0 {
		return "lists of encoded files are not read; store each file as a record of its own"
	}
	child := Member(f)
	d.Levels = append(d.Levels, member{1, child})
	return d.field(&f.Type.Children[child])
}

// Member returns the number of the child that holds the rows of a struct. It is -1 if the
// field is not a struct of bytes and a path.
func Member(f *arrowmeta.Field) int {
	if f.Type.Kind != arrowmeta.Struct || f.Dictionary != nil || len(f.Type.Children) != 2 {
		return -1
	}
	for i := range f.Type.Children {
		content, path := &f.Type.Children[i], &f.Type.Children[1-i]
		if content.Name == "bytes" && path.Name == "path" && isBinary(content) && isText(path) {
			return i
		}
	}
	return -1
}

func isBinary(f *arrowmeta.Field) bool {
	k := f.Type.Kind
	return f.Dictionary == nil && (k == arrowmeta.Binary || k == arrowmeta.LargeBinary || k == arrowmeta.BinaryView)
}

// isText reports whether a field holds text, or nothing but nulls.
func isText(f *arrowmeta.Field) bool {
	k := f.Type.Kind
	return k == arrowmeta.String || k == arrowmeta.LargeString || k == arrowmeta.StringView || k == arrowmeta.Null
}

// member is a level of structs. One child holds the rows. The level is stored like lists
// of one element.
type member struct {
	fixedSizeList
	child int
}

// Structs returns the number of levels of structs in front of the others: 1 or 0.
func (f *Field) Structs() int {
	if _, ok := f.Levels[0].(member); ok {
		return 1
	}
	return 0
}

// Child returns which child of the array of a level is the array of the next level.
func (f *Field) Child(level int) int {
	if m, ok := f.Levels[level].(member); ok {
		return m.child
	}
	return 0
}
