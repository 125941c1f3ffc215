package arrowio

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

// union is the schema of all files of a dataset. Its columns are matched by name. They have the
// order of the choice, or of the first file. Only a union compares files: a format reads one.
type union struct {
	schema  arrowmeta.Schema
	members []*member
	chosen  []string // the names of the columns; nil for all
}

// member is a schema that some files have, and how these files store the columns of the union.
type member struct {
	path    string // of the first of the files
	schema  *arrowmeta.Schema
	reasons []string         // by column of the files: why it cannot be a field, or ""
	places  map[string][]int // the numbers of the columns with a name
	adapts  bool             // as in metadata

	numbers []int              // by column of the union: its number in the files; -1 if all rows are null
	own     []*arrowtype.Field // by column of the union: how the files store it; nil if as the union does
}

// unite makes the union of some files, and sets the member of each file. The error is
// Incompatible if types of values disagree, or if some files lack a column that can be a field.
func unite(files []*file, chosen []string) (*union, error) {
	u := &union{schema: arrowmeta.Schema{Metadata: files[0].schema.Metadata}, chosen: chosen}
	known := map[string]*member{}
	for _, f := range files {
		key := u.key(f)
		if known[key] == nil {
			known[key] = newMember(f)
			u.members = append(u.members, known[key])
		}
		f.member = known[key]
	}
	if err := u.checkNames(files[0].Partition); err != nil {
		return nil, err
	}
	names, seen := chosen, map[string]int{}
	for i := range files[0].schema.Fields {
		if chosen == nil {
			names = append(names, files[0].schema.Fields[i].Name)
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

// has reports whether the columns with a name belong to the union.
func (u *union) has(name string) bool { return u.chosen == nil || slices.Contains(u.chosen, name) }

// key returns a text that is equal for files with equal columns.
func (u *union) key(f *file) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %q\n", f.adapts, f.schema.Metadata.Reserved())
	var add func(fields []arrowmeta.Field)
	add = func(fields []arrowmeta.Field) {
		for i := range fields {
			fmt.Fprintf(&b, "%q %s %q\n", fields[i].Name, fields[i].TypeString(), fields[i].Metadata)
			add(fields[i].Type.Children)
		}
	}
	for i := range f.schema.Fields {
		if u.has(f.schema.Fields[i].Name) {
			fmt.Fprintln(&b, i)
			add(f.schema.Fields[i : i+1])
		}
	}
	return b.String()
}

func newMember(f *file) *member {
	m := &member{path: f.Path, schema: f.schema, adapts: f.adapts, places: map[string][]int{}}
	_, m.reasons = arrowtype.Describe(f.schema)
	for i := range f.schema.Fields {
		name := f.schema.Fields[i].Name
		m.places[name] = append(m.places[name], i)
	}
	return m
}

// checkNames returns an error if no file has a chosen column, or if only some files have it. If
// none are chosen, the columns that can be fields must be in all files.
func (u *union) checkNames(keys files.Partition) error {
	having := map[string]int{} // the number of members
	for _, m := range u.members {
		for name := range m.places {
			having[name]++
		}
	}
	for _, name := range u.chosen {
		if having[name] == 0 && !keys.Has(name) {
			return status.Errorf(status.NotFound, "arrowio", "%s: there is no column %q", u.members[0].path, name).
				WithHint("the columns are %s", u.members[0].names(func(int) bool { return true })).With("field", name)
		}
	}
	for _, m := range u.members {
		for i := range m.schema.Fields {
			name := m.schema.Fields[i].Name
			if having[name] < len(u.members) && u.has(name) && (u.chosen != nil || m.reasons[i] == "") && !keys.Has(name) {
				return u.missing(name, m, having)
			}
		}
	}
	return nil
}

// missing returns the error for a column that only some files have.
func (u *union) missing(name string, has *member, having map[string]int) error {
	lacks := u.members[slices.IndexFunc(u.members, func(m *member) bool { return m.places[name] == nil })]
	first := u.members[0]
	common := first.names(func(i int) bool {
		return first.reasons[i] == "" && having[first.schema.Fields[i].Name] == len(u.members)
	})
	hint := "leave the column out, or open the files apart"
	switch {
	case u.chosen != nil:
	case common == "":
		hint = "the files have no columns in common; open them apart"
	default:
		hint = fmt.Sprintf("choose columns that all files have, such as columns=[%s], or open the files apart", common)
	}
	return disagree(lacks.path, name, fmt.Sprintf("there is no column %q, which %s has", name, has.path), hint)
}

// names lists the names of some columns, a dozen at most.
func (m *member) names(some func(i int) bool) string {
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
func (u *union) add(name string, nth int) error {
	var column *arrowmeta.Field
	var from *member         // the first with the type of the column
	refused, why := true, "" // no file so far has it as a field, and the last reason
	for _, m := range u.members {
		if nth >= len(m.places[name]) {
			m.numbers = append(m.numbers, -1)
			continue
		}
		number := m.places[name][nth]
		m.numbers = append(m.numbers, number)
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
				msg := fmt.Sprintf("column %q is no field, but one in %s: %s", name, from.path, reason)
				if refused {
					msg = fmt.Sprintf("column %q is a field, but none in %s: %s", name, from.path, why)
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
	u.schema.Fields = append(u.schema.Fields, *column)
	return nil
}

// unify returns a column for the values of two columns. The first one is the union of the columns
// in earlier files.
func unify(column *arrowmeta.Field, from *member, f *arrowmeta.Field, m *member) (arrowmeta.Field, error) {
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
func (m *member) store(column *arrowmeta.Field, from *member, ways map[string]*arrowtype.Field) error {
	last := len(m.numbers) - 1
	m.own = append(m.own, nil)
	if m.numbers[last] < 0 {
		return nil
	}
	f := &m.schema.Fields[m.numbers[last]]
	as, reason := arrowtype.Of(column)
	switch {
	case reason != "" || f.TypeString() == column.TypeString():
	case arrowtype.IsNull(f):
		m.numbers[last] = -1
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

// like sets the shape of a column, in every form in which files store it, to the shape of the field.
func (u *union) like(field *arrowtype.Field, column int) {
	for _, m := range u.members {
		if own := m.own[column]; own != nil {
			own.Like(field)
		}
	}
}

// columnOf returns the number of a column of the union in the file, and how the file stores its
// field. The number is -1 if all rows are null.
func (f *file) columnOf(column int, field *arrowtype.Field) (number int, as *arrowtype.Field) {
	if own := f.member.own[column]; own != nil {
		field = own
	}
	return f.member.numbers[column], field
}

// agreeClasses fails if the integers of a field stand for other classes in another file. It
// drops the names of classes that some files do not declare.
func agreeClasses(files []*file, fields []*arrowtype.Field) error {
	first := files[0]
	for _, f := range files[1:] {
		if arrowtype.SameFeatures(first.schema, f.schema) {
			continue
		}
		others, _ := arrowtype.Describe(f.schema)
		for i, field := range fields {
			number := f.member.numbers[i]
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

func otherType(column *arrowmeta.Field, from *member, f *arrowmeta.Field, m *member) error {
	return disagree(m.path, f.Name, fmt.Sprintf("field %q is %s, but %s in %s", f.Name, f.TypeString(), column.TypeString(), from.path), oneType)
}

func disagree(path, field, msg, hint string) error {
	return status.New(status.Incompatible, "arrowio", path+": "+msg).WithHint("%s", hint).
		With("path", path).With("field", field)
}
