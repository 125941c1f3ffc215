package parquet

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Leaf is a column of values. A field of the schema has one leaf, or several if it is a
// struct or a map.
type Leaf struct {
	Physical Physical
	Length   int    // bytes of a value, for Fixed
	Text     bool   // the values are UTF-8
	Narrow   int    // bytes of Arrow's integers, if these are narrower than Int32: 1 or 2
	Nodes    []Node // from the field to the values
}

// Node is a node of the schema on the way from a field to a leaf.
type Node struct {
	Repetition Repetition
	Definition int // the definition level from which on a value of this node is there
	Repeat     int // the repetition level of this node, and of all nodes below it up to the next repeated one
}

// Repetition is how often a node occurs in its parent (the enum FieldRepetitionType).
type Repetition int32

// The repetitions.
const (
	Required Repetition = iota
	Optional
	Repeated
)

// MaxDefinition returns the definition level of a value that is not null.
func (l *Leaf) MaxDefinition() int { return l.Nodes[len(l.Nodes)-1].Definition }

// MaxRepetition returns the number of repeated nodes.
func (l *Leaf) MaxRepetition() int { return l.Nodes[len(l.Nodes)-1].Repeat }

// arrowSchema is the key that Arrow's writers use for the schema of the columns, as an
// IPC message in base64. It has fixed-size lists and extension types, which Parquet's
// own schema cannot express.
const arrowSchema = "ARROW:schema"

// tree is a schema: the fields in Arrow's types, the leaves in their order in the file,
// and for every field the number of its first leaf.
type tree struct {
	fields []arrowmeta.Field
	leaves []Leaf
	firsts []int
}

// newTree builds the schema of elements, which are listed depth first, beginning with
// the root.
func newTree(elements []element) (*tree, error) {
	if len(elements) == 0 {
		return nil, fmt.Errorf("no schema")
	}
	b := builder{elements: elements[1:]}
	b.fits(elements[0].children)
	for i := 0; i < elements[0].children && b.err == nil; i++ {
		b.tree.firsts = append(b.tree.firsts, len(b.tree.leaves))
		b.tree.fields = append(b.tree.fields, b.next(nil))
	}
	if b.err == nil && len(b.elements) > 0 {
		b.fail("%d columns belong to no group", len(b.elements))
	}
	return &b.tree, b.err
}

// builder builds a tree.
type builder struct {
	elements []element // that are left
	tree     tree
	err      error
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// fits checks that n elements are left.
func (b *builder) fits(n int) {
	if n > len(b.elements) {
		b.fail("a group has %d columns, but only %d are left", n, len(b.elements))
	}
}

// next makes a field of the next element and its children. A repeated element is a list,
// even without a logical type.
func (b *builder) next(above []Node) arrowmeta.Field {
	if len(b.elements) == 0 {
		b.fail("a group has more columns than are left")
		return arrowmeta.Field{}
	}
	if len(above) == arrowmeta.MaxDepth {
		b.fail("columns nested more than %d deep", arrowmeta.MaxDepth)
		return arrowmeta.Field{}
	}
	e := b.elements[0]
	b.elements = b.elements[1:]
	if e.children == 0 && e.physical == group || e.repetition < Required || e.repetition > Repeated {
		b.fail("column %q has neither values nor columns, or an unknown repetition", e.name)
	}
	nodes := append(above[:len(above):len(above)], e.node(above))
	f := arrowmeta.Field{Name: e.name, Nullable: e.repetition == Optional}
	if e.children > 0 {
		f.Type = b.group(e, nodes)
	} else {
		if err := e.check(); err != nil {
			b.fail("%w", err)
		}
		f.Type = e.leaf()
		b.tree.leaves = append(b.tree.leaves, Leaf{e.physical, e.length, f.Type.Kind == arrowmeta.String, narrow(&f.Type), nodes})
	}
	if e.repetition == Repeated {
		f = arrowmeta.Field{Name: e.name, Type: arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Name: "item", Type: f.Type}}}}
	}
	return f
}

func narrow(t *arrowmeta.Type) int {
	if t.Kind == arrowmeta.Int && t.BitWidth < 32 {
		return t.BitWidth / 8
	}
	return 0
}

// node returns the levels of an element below others.
func (e *element) node(above []Node) Node {
	n := Node{Repetition: e.repetition}
	if len(above) > 0 {
		n.Definition, n.Repeat = above[len(above)-1].Definition, above[len(above)-1].Repeat
	}
	if e.repetition != Required {
		n.Definition++
	}
	if e.repetition == Repeated {
		n.Repeat++
	}
	return n
}

// group returns the type of an element with children.
func (b *builder) group(e element, nodes []Node) arrowmeta.Type {
	var children []arrowmeta.Field
	b.fits(e.children)
	for i := 0; i < e.children && b.err == nil; i++ {
		children = append(children, b.next(nodes))
	}
	if len(children) == 1 && children[0].Type.Kind == arrowmeta.List && len(children[0].Type.Children) == 1 {
		entry := children[0].Type.Children[0]
		switch e.logical.kind {
		case logicalMap:
			return arrowmeta.Type{Kind: arrowmeta.Map, Children: []arrowmeta.Field{entry}}
		case logicalList:
			return listOf(e, children[0].Name, entry)
		}
	}
	return arrowmeta.Type{Kind: arrowmeta.Struct, Children: children}
}

// listOf returns the type of a list with a repeated child. If the child is a group of one
// column, the elements are that column's. But if the child has a name that old writers
// used, the elements are the group (LogicalTypes.md, "Lists").
func listOf(e element, name string, entry arrowmeta.Field) arrowmeta.Type {
	t := &entry.Type
	if t.Kind == arrowmeta.Struct && len(t.Children) == 1 && name != "array" && name != e.name+"_tuple" {
		entry = t.Children[0]
	}
	return arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{entry}}
}

// schema returns the schema with what only the stored one of Arrow says, if it lists the
// same columns. A tool that does not know Arrow may have dropped columns and copied the
// metadata.
func (t *tree) schema(meta arrowmeta.Metadata) (arrowmeta.Schema, error) {
	own := arrowmeta.Schema{Fields: t.fields, Metadata: slices.DeleteFunc(slices.Clone(meta), func(kv arrowmeta.KeyValue) bool { return kv.Key == arrowSchema })}
	text, ok := meta.Get(arrowSchema)
	if !ok {
		return own, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return own, fmt.Errorf("%s: %w", arrowSchema, err)
	}
	stored, err := arrowmeta.ReadSchema(raw)
	if err != nil {
		return own, fmt.Errorf("%s: %w", arrowSchema, err)
	}
	if len(stored.Fields) != len(own.Fields) {
		return own, nil
	}
	for i := range own.Fields {
		if stored.Fields[i].Name != own.Fields[i].Name {
			return own, nil
		}
	}
	fields := make([]arrowmeta.Field, len(own.Fields))
	for i := range fields {
		fields[i] = restored(own.Fields[i], stored.Fields[i])
	}
	own.Fields = fields
	return own, nil
}

// restored returns a field with what only Arrow's schema says of it: the lengths of lists, time
// zones, extension types, offsets of 64 bits for text, and which plain integers are times. Arrow
// for Rust stores durations, seconds and dates of 64 bits so. All else is Parquet's, because it
// describes what is stored: pyarrow stores timestamps of seconds as milliseconds.
func restored(own, stored arrowmeta.Field) arrowmeta.Field {
	f, t, s := own, &own.Type, &stored.Type
	switch {
	case t.Kind == arrowmeta.List && listLike(s.Kind) && len(s.Children) == 1:
		f.Type = arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{restored(t.Children[0], s.Children[0])}}
		if s.Kind == arrowmeta.FixedSizeList {
			f.Type.Kind, f.Type.ListSize = s.Kind, s.ListSize
		}
	case t.Kind == arrowmeta.Struct && s.Kind == arrowmeta.Struct && len(t.Children) == len(s.Children):
		f.Type.Children = make([]arrowmeta.Field, len(t.Children))
		for i := range t.Children {
			f.Type.Children[i] = restored(t.Children[i], s.Children[i])
		}
	case t.Kind == arrowmeta.Timestamp && s.Kind == arrowmeta.Timestamp:
		f.Type.TimeZone = s.TimeZone
	case t.Kind == arrowmeta.Int && t.BitWidth == s.BitWidth && s.Kind.Temporal():
		f.Type = *s
	case t.Kind == arrowmeta.String && s.Kind == arrowmeta.LargeString, t.Kind == arrowmeta.Binary && s.Kind == arrowmeta.LargeBinary:
		f.Type = *s
	case t.Kind == arrowmeta.FixedSizeBinary && s.Kind == arrowmeta.FixedSizeBinary, t.Kind == s.Kind:
	default:
		return f
	}
	f.Metadata = stored.Metadata
	return f
}

func listLike(k arrowmeta.Kind) bool {
	switch k {
	case arrowmeta.List, arrowmeta.LargeList, arrowmeta.FixedSizeList, arrowmeta.ListView, arrowmeta.LargeListView:
		return true
	}
	return false
}
