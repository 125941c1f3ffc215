package sharding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The codes of faults. Layouts report their problems with the same codes.
const (
	UnknownAxis   = "unknown-axis"   // the mesh does not have the axis; fact dimension
	DuplicateAxis = "duplicate-axis" // the spec names the axis twice; facts dimension, other
	SpecRank      = "spec-rank"      // the spec has more entries than the array has dimensions; facts entries, rank
	Indivisible   = "indivisible"    // the number of tiles does not divide the dimension; facts size, tiles, remainder
)

// Fault is one reason why a spec does not fit its mesh or its array.
type Fault struct {
	Code      problem.Code
	Dimension int            // dimension of the array, which is also the number of the spec's entry
	Message   string         // expected and actual
	Hint      string         // what to do
	Facts     []problem.Fact // the numbers of the message
}

func (f Fault) err() error {
	e := status.New(status.InvalidArgument, "sharding", f.Message).WithHint("%s", f.Hint).With("code", string(f.Code))
	for _, fact := range f.Facts {
		e = e.With(fact.Name, fact.Value)
	}
	return e
}

// Fit returns the sharding and the tiling of an array. If the spec does not fit,
// it returns every fault instead. It compares sizes only if rank and axes are
// right. Messages name the array by the text array, such as "array x". No size may
// be negative.
func Fit(m *mesh.Mesh, spec PartitionSpec, shape []int, array string) (*NamedSharding, Tiling, []Fault) {
	of := " of " + array
	faults := append(rankFaults(spec, shape, of), axisFaults(m, spec, of)...)
	if len(faults) == 0 {
		s := build(m, spec)
		if faults = s.sizeFaults(shape, of); len(faults) == 0 {
			return s, s.tiling(shape), nil
		}
	}
	return nil, Tiling{}, faults
}

// Check checks that an array of this shape can have the sharding. The spec may
// have at most one entry per dimension, and the number of tiles must divide every
// dimension. (Some functions of JAX accept trailing Nones.) The error is
// InvalidArgument. Like JAX's, it names the first dimension that does not divide.
// Every number divides zero.
func (s *NamedSharding) Check(shape []int) error {
	if d := slices.IndexFunc(shape, func(n int) bool { return n < 0 }); d >= 0 {
		return fail("dimension %d of shape %s is negative", d, wording.Shape(shape)).With("dimension", d)
	}
	faults := rankFaults(s.spec, shape, "")
	if len(faults) == 0 {
		faults = s.sizeFaults(shape, "")
	}
	if len(faults) > 0 {
		return faults[0].err()
	}
	return nil
}

// axisFaults lists the axes that a spec names again, and the axes that the mesh
// does not have. In a message, of names the array or the spec.
func axisFaults(m *mesh.Mesh, spec PartitionSpec, of string) (faults []Fault) {
	used := map[string]int{}
	for d, entry := range spec {
		for _, name := range entry {
			before, again := used[name]
			used[name] = d
			dimension := problem.Fact{Name: "dimension", Value: int64(d)}
			if again {
				where := fmt.Sprintf("dimension %d and dimension %d", before, d)
				if before == d {
					where = fmt.Sprintf("dimension %d twice", d)
				}
				faults = append(faults, Fault{
					Code: DuplicateAxis, Dimension: d, Facts: []problem.Fact{dimension, {Name: "other", Value: int64(before)}},
					Message: fmt.Sprintf("axis %s partitions %s%s", wording.Quote(name), where, of),
					Hint:    "an axis can partition one dimension once",
				})
			} else if _, _, known := m.Axis(name); !known {
				faults = append(faults, Fault{
					Code: UnknownAxis, Dimension: d, Facts: []problem.Fact{dimension},
					Message: fmt.Sprintf("axis %s%s is not in %s", wording.Quote(name), of, m),
					Hint:    axisHint(m),
				})
			}
		}
	}
	return faults
}

// axisHint lists the axes that a spec may name.
func axisHint(m *mesh.Mesh) string {
	axes := m.Axes()
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = wording.Quote(a.Name)
	}
	switch len(names) {
	case 0:
		return "leave it out: the mesh has no axes"
	case 1:
		return "use " + names[0]
	}
	return "use one of " + strings.Join(names, ", ")
}

// rankFaults reports a spec with more entries than the array has dimensions.
func rankFaults(spec PartitionSpec, shape []int, of string) []Fault {
	if len(spec) <= len(shape) {
		return nil
	}
	return []Fault{{
		Code:    SpecRank,
		Message: fmt.Sprintf("spec %s%s has %s, but shape %s has rank %d", wording.Plain(spec.String()), of, wording.Count(int64(len(spec)), "entry", "entries"), wording.Shape(shape), len(shape)),
		Hint:    "give at most one entry per dimension",
		Facts:   []problem.Fact{{Name: "entries", Value: int64(len(spec))}, {Name: "rank", Value: int64(len(shape))}},
	}}
}

// sizeFaults lists the dimensions that their numbers of tiles do not divide.
func (s *NamedSharding) sizeFaults(shape []int, of string) (faults []Fault) {
	for d, tiles := range s.tiles {
		n := shape[d]
		if n%tiles == 0 {
			continue
		}
		by, what := make([]string, len(s.spec[d])), "axis"
		for i, name := range s.spec[d] {
			by[i] = fmt.Sprintf("%s (size %d)", wording.Quote(name), s.sizes[s.axes[d][i]])
		}
		if len(by) > 1 {
			what = "axes"
		}
		faults = append(faults, Fault{
			Code:      Indivisible,
			Dimension: d,
			Message:   fmt.Sprintf("dimension %d%s of shape %s is split %d ways by %s %s, but %d %% %d = %d", d, of, wording.Shape(shape), tiles, what, strings.Join(by, ", "), n, tiles, n%tiles),
			Hint:      "the nearest sizes that divide: " + Nearest(n, tiles),
			Facts:     []problem.Fact{{Name: "size", Value: int64(n)}, {Name: "tiles", Value: int64(tiles)}, {Name: "remainder", Value: int64(n % tiles)}},
		})
	}
	return faults
}

// Nearest names the multiples of tiles on both sides of a size, except zero.
func Nearest(size, tiles int) string {
	above := uint64(size-size%tiles) + uint64(tiles)
	if size < tiles {
		return fmt.Sprint(above)
	}
	return fmt.Sprintf("%d or %d", size-size%tiles, above)
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "sharding", format, args...)
}
