package sharding

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PartitionSpec lists the mesh axes that partition each dimension of an array.
// Entry d has the axes of dimension d, most significant first. A dimension with
// an empty entry, or past the last entry, is not partitioned. Trailing empty
// entries count for the rank of the spec, as in JAX.
type PartitionSpec [][]string

// NewSpec makes a spec of entries as in JAX's P and in layout documents. An entry is
// nil for a dimension that is not partitioned, a string for one axis, and a list of
// strings ([]string or []any) for several. An empty list means nil. The error is
// InvalidArgument for any other entry, an empty name or a nested list.
func NewSpec(entries ...any) (PartitionSpec, error) {
	spec := make(PartitionSpec, len(entries))
	for d, e := range entries {
		axes, err := entryOf(d, e)
		if err != nil {
			return nil, err
		}
		spec[d] = axes
	}
	return spec, nil
}

func entryOf(d int, entry any) (axes []string, err error) {
	switch e := entry.(type) {
	case nil:
	case string:
		axes = []string{e}
	case []string:
		axes = slices.Clone(e)
	case []any:
		for _, x := range e {
			name, ok := x.(string)
			if !ok {
				return nil, badEntry(d, "a list that holds "+kindOf(x))
			}
			axes = append(axes, name)
		}
	default:
		return nil, badEntry(d, kindOf(entry))
	}
	if slices.Contains(axes, "") {
		return nil, badEntry(d, "an axis without a name")
	}
	return axes, nil
}

func badEntry(d int, what string) error {
	return fail("entry %d of the spec is %s, but must be nothing, an axis or a list of axes", d, what).
		WithHint("name the axes of one dimension in one flat list").With("dimension", d)
}

func kindOf(x any) string {
	switch x.(type) {
	case nil:
		return "nothing"
	case []any, []string:
		return "another list"
	}
	return fmt.Sprintf("a value of type %T", x)
}

// P is NewSpec for specs that are literals in source code. It panics on an error.
func P(entries ...any) PartitionSpec {
	spec, err := NewSpec(entries...)
	if err != nil {
		panic(err)
	}
	return spec
}

// Entries returns the entries as layout documents have them: nil, a string for
// one axis, a []string for several. The list is never nil. NewSpec accepts it.
func (p PartitionSpec) Entries() []any {
	entries := make([]any, len(p))
	for d, axes := range p {
		switch len(axes) {
		case 0:
		case 1:
			entries[d] = axes[0]
		default:
			entries[d] = slices.Clone(axes)
		}
	}
	return entries
}

// Equal reports whether both have the same entries. As in JAX, trailing empty
// entries make a difference.
func (p PartitionSpec) Equal(o PartitionSpec) bool {
	return slices.EqualFunc(p, o, slices.Equal[[]string])
}

// Clone returns a deep copy.
func (p PartitionSpec) Clone() PartitionSpec {
	c := make(PartitionSpec, len(p))
	for d, axes := range p {
		c[d] = slices.Clone(axes)
	}
	return c
}

// String prints the spec as JAX does: P('data', None, ('a', 'b')), P('x',), P().
func (p PartitionSpec) String() string {
	entries := make([]string, len(p))
	for d, axes := range p {
		names := make([]string, len(axes))
		for i, name := range axes {
			names[i] = repr(name)
		}
		switch len(names) {
		case 0:
			entries[d] = "None"
		case 1:
			entries[d] = names[0]
		default:
			entries[d] = tuple(names)
		}
	}
	return "P" + tuple(entries)
}

// tuple writes parts as Python prints a tuple.
func tuple(parts []string) string {
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// repr writes a name as Python's repr does: in single quotes, or in double quotes
// if the name contains single quotes and no double ones.
func repr(name string) string {
	quote := '\''
	if strings.ContainsRune(name, '\'') && !strings.ContainsRune(name, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range name {
		writeRune(&b, r, quote)
	}
	b.WriteRune(quote)
	return b.String()
}

func writeRune(b *strings.Builder, r, quote rune) {
	switch {
	case r == quote || r == '\\':
		b.WriteRune('\\')
		b.WriteRune(r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case strconv.IsPrint(r):
		b.WriteRune(r)
	case r < utf8.RuneSelf<<1:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 1<<16:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}
