// Package union makes one schema for the files of a dataset. It matches columns by name, and
// records how each file stores them. Only this package compares files: a format reads one.
package union

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Union is the schema of all files of a dataset. Its columns have the order of the choice, or
// of the first file.
type Union struct {
	Schema  arrowmeta.Schema
	Chosen  []string // the names of the columns; nil for all
	members []*Member
}

// File is a file of a dataset.
type File struct {
	*files.File
	Schema *arrowmeta.Schema

	// Adapts reports whether a decoded column has the buffers of any field with the same
	// values, whatever the type of the column is.
	Adapts bool

	Member *Member // set by Unite
}

// Member is a schema that some files have, and how these files store the columns of the union.
type Member struct {
	path    string // the first of the files
	schema  *arrowmeta.Schema
	reasons []string         // by column of the files: why it cannot be a field, or ""
	places  map[string][]int // the numbers of the columns with a name
	adapts  bool

	Numbers []int              // by column of the union: its number in the files; -1 if all rows are null
	own     []*arrowtype.Field // by column of the union: how the files store it; nil if as the union does
}

// Alone returns the member for a file that stores all columns of a dataset as the dataset has them.
func Alone(columns int) *Member {
	m := &Member{own: make([]*arrowtype.Field, columns), Numbers: make([]int, columns)}
	for i := range m.Numbers {
		m.Numbers[i] = i
	}
	return m
}

// Unite makes the union of some files, and sets the member of each file. If no columns are
// chosen, the union has the columns of the first file. The error is Incompatible if types of
// values disagree, or if some files lack a column that can be a field.
func Unite(list []File, chosen []string) (*Union, error) {
	first := &list[0]
	u := &Union{Schema: arrowmeta.Schema{Metadata: first.Schema.Metadata}, Chosen: chosen}
	known := map[string]*Member{}
	for i := range list {
		f := &list[i]
		key := u.key(f)
		if known[key] == nil {
			known[key] = newMember(f)
			u.members = append(u.members, known[key])
		}
		f.Member = known[key]
	}
	if err := u.checkNames(first.Partition); err != nil {
		return nil, err
	}
	names, seen := chosen, map[string]int{}
	for i := range first.Schema.Fields {
		if chosen == nil {
			names = append(names, first.Schema.Fields[i].Name)
		}
	}
	for _, name := range names {
		if u.members[0].places[name] == nil {
			continue // directories name it
		}
		if err := u.add(name, seen[name]); err != nil {
			return nil, err
		}
		seen[name]++
	}
	return u, nil
}

// Has reports whether the columns with a name belong to the union.
func (u *Union) Has(name string) bool { return u.Chosen == nil || slices.Contains(u.Chosen, name) }

// key returns a text that is equal for files with equal columns.
func (u *Union) key(f *File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %q\n", f.Adapts, f.Schema.Metadata.Reserved())
	var add func(fields []arrowmeta.Field)
	add = func(fields []arrowmeta.Field) {
		for i := range fields {
			fmt.Fprintf(&b, "%q %s %q\n", fields[i].Name, fields[i].TypeString(), fields[i].Metadata)
			add(fields[i].Type.Children)
		}
	}
	for i := range f.Schema.Fields {
		if u.Has(f.Schema.Fields[i].Name) {
			fmt.Fprintln(&b, i)
			add(f.Schema.Fields[i : i+1])
		}
	}
	return b.String()
}

func newMember(f *File) *Member {
	m := &Member{path: f.Path, schema: f.Schema, adapts: f.Adapts, places: map[string][]int{}}
	_, m.reasons = arrowtype.Describe(f.Schema)
	for i := range f.Schema.Fields {
		name := f.Schema.Fields[i].Name
		m.places[name] = append(m.places[name], i)
	}
	return m
}

// checkNames returns an error if no file has a chosen column, or if only some files have it. If
// none are chosen, the columns that can be fields must be in all files.
func (u *Union) checkNames(keys files.Partition) error {
	having := map[string]int{} // the number of members
	for _, m := range u.members {
		for name := range m.places {
			having[name]++
		}
	}
	for _, name := range u.Chosen {
		if having[name] == 0 && !keys.Has(name) {
			return status.Errorf(status.NotFound, "arrowio", "%s: there is no column %q", u.members[0].path, name).
				WithHint("the columns are %s", u.members[0].names(func(int) bool { return true })).With("field", name)
		}
	}
	for _, m := range u.members {
		for i := range m.schema.Fields {
			name := m.schema.Fields[i].Name
			if having[name] < len(u.members) && u.Has(name) && (u.Chosen != nil || m.reasons[i] == "") && !keys.Has(name) {
				return u.missing(name, m, having)
			}
		}
	}
	return nil
}

// missing returns the error for a column that only some files have.
func (u *Union) missing(name string, has *Member, having map[string]int) error {
	lacks := u.members[slices.IndexFunc(u.members, func(m *Member) bool { return m.places[name] == nil })]
	first := u.members[0]
	common := first.names(func(i int) bool {
		return first.reasons[i] == "" && having[first.schema.Fields[i].Name] == len(u.members)
	})
	hint := "leave the column out, or open the files apart"
	switch {
	case u.Chosen != nil:
	case common == "":
		hint = "the files have no columns in common; open them apart"
	default:
		hint = fmt.Sprintf("choose columns that all files have, such as columns=[%s], or open the files apart", common)
	}
	return disagree(lacks.path, name, fmt.Sprintf("there is no column %q, which %s has", name, has.path), hint)
}

// names lists the names of some columns, a dozen at most.
func (m *Member) names(some func(i int) bool) string {
	var names []string
	for i := range m.schema.Fields {
		if some(i) {
			names = append(names, strconv.Quote(m.schema.Fields[i].Name))
		}
	}
	if len(names) > 12 {
		names = append(names[:12], "…")
	}
	return strings.Join(names, ", ")
}

// add adds a column to the union, which comes after nth columns with the same name.
func (u *Union) add(name string, nth int) error {
	var column *arrowmeta.Field
	var from *Member         // the first with the type of the column
	refused, why := true, "" // no file so far has it as a field, and the last reason
	for _, m := range u.members {
		if nth >= len(m.places[name]) {
			m.Numbers = append(m.Numbers, -1)
			continue
		}
		number := m.places[name][nth]
		m.Numbers = append(m.Numbers, number)
		f, reason := &m.schema.Fields[number], m.reasons[number]
		switch {
		case column == nil || arrowtype.IsNull(column) && !arrowtype.IsNull(f):
			column, from = f, m
		case refused && reason != "":
		default:
			one, err := unify(column, from, f, m)
			if err != nil {
				return err
			}
			if refused != (reason != "") && !arrowtype.OnlyNulls(column) && !arrowtype.OnlyNulls(f) {
				msg := fmt.Sprintf("column %q cannot be a field, but it is one in %s: %s", name, from.path, reason)
				if refused {
					msg = fmt.Sprintf("column %q is a field, but cannot be one in %s: %s", name, from.path, why)
				}
				return disagree(m.path, name, msg, oneType)
			}
			if arrowtype.OnlyNulls(column) {
				from = m
			}
			column = &one
		}
		refused, why = refused && reason != "", reason
	}
	ways := map[string]*arrowtype.Field{}
	for _, m := range u.members {
		if err := m.store(column, from, ways); err != nil {
			return err
		}
	}
	u.Schema.Fields = append(u.Schema.Fields, *column)
	return nil
}

// unify returns a column for the values of two columns. The first one is the union of the columns
// in earlier files.
func unify(column *arrowmeta.Field, from *Member, f *arrowmeta.Field, m *Member) (arrowmeta.Field, error) {
	one, ok := arrowtype.Unify(column, f)
	if !ok {
		return one, otherType(column, from, f, m)
	}
	wt, _ := column.Extension()
	ht, _ := f.Extension()
	wd, _ := column.Metadata.Get(arrowtype.DTypeKey)
	hd, _ := f.Metadata.Get(arrowtype.DTypeKey)
	if wt != ht || wd != hd {
		return one, disagree(m.path, f.Name, fmt.Sprintf("field %q has the extension type %q, but %q in %s", f.Name, ht+hd, wt+wd, from.path), oneType)
	}
	if wr, hr := describeRows(column), describeRows(f); wr != hr && !arrowtype.OnlyNulls(column) && !arrowtype.OnlyNulls(f) {
		return one, disagree(m.path, f.Name, fmt.Sprintf("field %q has %s, but %s in %s", f.Name, hr, wr, from.path), oneType)
	}
	return one, nil
}

// describeRows returns the type and shape of a column's rows. TypeString alone does
// not contain the shape of tensors or the metadata of a list's child.
func describeRows(f *arrowmeta.Field) string {
	rows, reason := arrowtype.Of(f)
	if reason != "" {
		return "no rows of an array"
	}
	return fmt.Sprintf("rows of %v%v", rows.Type, rows.Shape)
}

// store records how the files store a column, which is the last one. Its type comes from another
// member. Files that store it in one way have one field, which ways holds by the type.
func (m *Member) store(column *arrowmeta.Field, from *Member, ways map[string]*arrowtype.Field) error {
	last := len(m.Numbers) - 1
	m.own = append(m.own, nil)
	if m.Numbers[last] < 0 {
		return nil
	}
	f := &m.schema.Fields[m.Numbers[last]]
	as, reason := arrowtype.Of(column)
	switch {
	case reason != "" || f.TypeString() == column.TypeString():
	case arrowtype.IsNull(f):
		m.Numbers[last] = -1
	case m.adapts:
		if !arrowtype.SameDepth(f, column) { // lists of nulls beside lists of lists
			return otherType(column, from, f, m)
		}
	default:
		way := f.TypeString()
		if ways[way] == nil {
			own, _ := arrowtype.Of(f)
			if arrowtype.OnlyNulls(f) {
				own, _ = arrowtype.ListsOfNulls(f, as)
			}
			if own == nil {
				return otherType(column, from, f, m)
			}
			ways[way] = own
		}
		m.own[last] = ways[way]
	}
	return nil
}

// Like gives a column the shape of the field, in every way that files store it.
func (u *Union) Like(field *arrowtype.Field, column int) {
	for _, m := range u.members {
		if own := m.own[column]; own != nil {
			own.Like(field)
		}
	}
}

// Column returns the number of a column of the union in the files, and how the files store its
// field. The number is -1 if all rows are null.
func (m *Member) Column(column int, field *arrowtype.Field) (number int, as *arrowtype.Field) {
	if own := m.own[column]; own != nil {
		field = own
	}
	return m.Numbers[column], field
}

// AgreeClasses fails if the integers of a field stand for other classes in another file. It
// drops the names of classes that some files do not declare.
func AgreeClasses(list []File, fields []*arrowtype.Field) error {
	first := &list[0]
	for i := range list[1:] {
		f := &list[i+1]
		if arrowtype.SameFeatures(first.Schema, f.Schema) {
			continue
		}
		others, _ := arrowtype.Describe(f.Schema)
		for i, field := range fields {
			number := f.Member.Numbers[i]
			switch {
			case field == nil || field.Names == nil || number < 0:
			case others[number] == nil || others[number].Names == nil:
				field.Names = nil
			default:
				if what := source.DifferentClasses(others[number].Names, field.Names); what != "" {
					return disagree(f.Path, field.Name, fmt.Sprintf("field %q stands for other classes than in %s: %s", field.Name, first.Path, what), "write the files again with one list of classes, or open them apart")
				}
			}
		}
	}
	return nil
}

const oneType = "write the column again with one type, such as by table.cast of pyarrow; or choose the other columns (columns=), or open the files apart"

func otherType(column *arrowmeta.Field, from *Member, f *arrowmeta.Field, m *Member) error {
	return disagree(m.path, f.Name, fmt.Sprintf("field %q is %s, but %s in %s", f.Name, f.TypeString(), column.TypeString(), from.path), oneType)
}

func disagree(path, field, msg, hint string) error {
	return status.New(status.Incompatible, "arrowio", path+": "+msg).WithHint("%s", hint).
		With("path", path).With("field", field)
}
