package layout

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// checkSpec returns the sharding of an array if the spec fits it. Else it
// reports every problem of the array, not just the first.
func (l *Layout) checkSpec(a Array, spec sharding.PartitionSpec, path string) (*sharding.NamedSharding, sharding.Tiling, bool) {
	specPath := path + "/spec"
	if a.generated() {
		specPath = path
	}
	tooLarge := arrayBytes(a) > MaxInteger
	if tooLarge {
		l.report(problem.Error, TooLarge, path+"/shape", fmt.Sprintf("array %s of shape %s takes more than 2^53 bytes", wording.Quote(a.Name), wording.Shape(a.Shape)), "make the batch or the row smaller")
	}
	s, t, faults := sharding.Fit(l.mesh, spec, a.Shape, "array "+wording.Quote(a.Name))
	for _, f := range faults {
		hint, at := f.Hint, jsontext.Element(specPath, f.Dimension)
		switch {
		case f.Code == sharding.SpecRank:
			at = specPath
		case f.Code == sharding.Indivisible:
			hint = l.divisibleHint(a, f)
			if at = jsontext.Element(path+"/shape", f.Dimension); a.generated() {
				at = path
			}
		}
		l.report(problem.Error, f.Code, at, f.Message, hint, f.Facts...)
	}
	if tooLarge || len(faults) > 0 {
		return nil, t, false
	}
	return s, t, l.checkRanges(a, t, specPath)
}

// divisibleHint returns the hint for a dimension that its tiles do not divide. It
// names the nearest sizes that fit; for a batch dimension they fit all arrays.
func (l *Layout) divisibleHint(a Array, f sharding.Fault) string {
	d := f.Dimension
	if d >= a.BatchDims {
		return f.Hint + "; or partition another dimension"
	}
	sizes := sharding.Nearest(a.Shape[d], l.batchTiles(d))
	if a.BatchDims == 1 {
		return "use a batch of " + sizes
	}
	return fmt.Sprintf("use %s as batch dimension %d", sizes, d)
}

// batchTiles returns the number that must divide batch dimension d. It follows from
// the specs of all arrays and of the mask, or from the way of loading (loading.go).
func (l *Layout) batchTiles(d int) int {
	if l.Loading() == LoadReshard && len(l.doc.Batch.Size) == 1 {
		return l.mesh.Size()
	}
	specs := []sharding.PartitionSpec{l.doc.Batch.MaskSpec}
	for i := range l.doc.Arrays {
		if s := &l.doc.Arrays[i]; !s.Static {
			specs = append(specs, s.Spec)
		}
	}
	all := 1
	for _, spec := range specs {
		if d < len(spec) {
			all = lcm(all, l.tilesOf(spec[d]))
		}
	}
	return all
}

// tilesOf returns how many tiles an entry of a spec divides its dimension into.
// It ignores unknown axes.
func (l *Layout) tilesOf(entry []string) int {
	k := 1
	for i, name := range entry {
		if _, axis, ok := l.mesh.Axis(name); ok && !slices.Contains(entry[:i], name) {
			k *= axis.Size
		}
	}
	return k
}

func lcm(a, b int) int { return a / int(gcd(int64(a), int64(b))) * b }

// checkRanges bounds the number of row ranges of an array in the process that
// has most devices, before anything computes the ranges.
func (l *Layout) checkRanges(a Array, t sharding.Tiling, path string) bool {
	if a.Kind == Static {
		return true
	}
	n := runs(a.Shape[:a.BatchDims], t.Tiles())
	if n = plus(0, n, int64(min(t.Count(), l.most))); n > MaxRanges {
		l.report(problem.Error, TooManyRanges, path, fmt.Sprintf("array %s makes up to %d separate row ranges in a process, but may make %d", wording.Quote(a.Name), n, MaxRanges),
			"partition an earlier batch dimension, or make the earlier ones smaller", fact("ranges", n), fact("limit", MaxRanges))
	}
	return n <= MaxRanges
}
