package arrowmeta

import "fmt"

// parquetFields returns the fields of a schema. Parquet lists its columns depth
// first, beginning with the root.
func parquetFields(columns []parquetColumn) ([]Field, error) {
	if len(columns) == 0 {
		return nil, fmt.Errorf("no schema")
	}
	b := parquetBuilder{columns: columns[1:]}
	fields := b.take(columns[0].children, 1)
	if b.err == nil && len(b.columns) > 0 {
		b.fail("%d columns belong to no group", len(b.columns))
	}
	return fields, b.err
}

// parquetBuilder builds a tree of columns that are listed depth first.
type parquetBuilder struct {
	columns []parquetColumn
	err     error
}

func (b *parquetBuilder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// take makes n fields of the next columns and their children.
func (b *parquetBuilder) take(n, depth int) []Field {
	if depth > MaxDepth {
		b.fail("columns nested more than %d deep", MaxDepth)
	}
	if n > len(b.columns) {
		b.fail("a group has %d columns, but only %d are left", n, len(b.columns))
	}
	var fields []Field
	for i := 0; i < n && b.err == nil; i++ {
		fields = append(fields, b.next(depth))
	}
	return fields
}

// next makes a field of the next column. A repeated column is a list, even
// without a logical type.
func (b *parquetBuilder) next(depth int) Field {
	if len(b.columns) == 0 {
		b.fail("a group has more columns than are left")
		return Field{}
	}
	c := b.columns[0]
	b.columns = b.columns[1:]
	f := Field{Name: c.name, Nullable: c.repetition == parquetOptional}
	if c.children > 0 || c.physical == parquetGroup {
		f.Type = b.group(c, depth)
	} else {
		f.Type = c.leaf()
	}
	if c.repetition == parquetRepeated {
		f = Field{Name: c.name, Type: Type{Kind: List, Children: []Field{{Name: "item", Type: f.Type}}}}
	}
	return f
}

// group returns the type of a column with children.
func (b *parquetBuilder) group(c parquetColumn, depth int) Type {
	children := b.take(c.children, depth+1)
	if len(children) == 1 && children[0].Type.Kind == List && len(children[0].Type.Children) == 1 {
		entry := children[0].Type.Children[0]
		switch c.logical.kind {
		case logicalMap:
			return Type{Kind: Map, Children: []Field{entry}}
		case logicalList:
			return listOf(c, children[0].Name, entry)
		}
	}
	return Type{Kind: Struct, Children: children}
}

// listOf returns the type of a list with a repeated child. If the child is a group
// of one column, the elements are that column's. But if the child has a name that
// old writers used, the elements are the group (LogicalTypes.md, "Lists").
func listOf(c parquetColumn, name string, entry Field) Type {
	t := &entry.Type
	if t.Kind == Struct && len(t.Children) == 1 && name != "array" && name != c.name+"_tuple" {
		entry = t.Children[0]
	}
	return Type{Kind: List, Children: []Field{entry}}
}
