package sharding

import (
	"fmt"
	"slices"
	"strings"
)

// PartitionSpec says, for each dimension of an array, over which mesh axes it
// is partitioned: entry d lists the axes of dimension d, most significant
// first; an empty entry, and every dimension past the last entry, is not
// partitioned. Trailing empty entries count for the rank of the spec, as in JAX.
type PartitionSpec [][]string

// P makes a spec as JAX's P does: nil for a dimension that is not partitioned,
// a string for one axis, a []string for several. It panics on any other type,
// which is a mistake in the program.
func P(entries ...any) PartitionSpec {
	spec := make(PartitionSpec, len(entries))
	for i, e := range entries {
		switch e := e.(type) {
		case nil:
		case string:
			spec[i] = []string{e}
		case []string:
			spec[i] = slices.Clone(e)
		default:
			panic(fmt.Sprintf("sharding.P: entry %d is a %T, want nil, string or []string", i, e))
		}
	}
	return spec
}

// Clone gives a copy that shares nothing.
func (p PartitionSpec) Clone() PartitionSpec {
	c := make(PartitionSpec, len(p))
	for i, e := range p {
		c[i] = slices.Clone(e)
	}
	return c
}

// String prints the spec as JAX does: P('data', None, ('a', 'b')), P('x',), P().
func (p PartitionSpec) String() string {
	parts := make([]string, len(p))
	for i, e := range p {
		parts[i] = entryText(e)
	}
	if len(parts) == 1 {
		return "P(" + parts[0] + ",)"
	}
	return "P(" + strings.Join(parts, ", ") + ")"
}

func entryText(axes []string) string {
	switch len(axes) {
	case 0:
		return "None"
	case 1:
		return "'" + axes[0] + "'"
	}
	return "('" + strings.Join(axes, "', '") + "')"
}
