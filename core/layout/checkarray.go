package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// checkSpec returns the sharding of an array if the spec fits it. Else it
// reports every problem of the array, not just the first.
func (l *Layout) checkSpec(a Array, spec sharding.PartitionSpec, path string) (s *sharding.NamedSharding, t sharding.Tiling, ok bool) {
	before := len(l.problems)
	specPath := path + "/spec"
	if a.Kind != Data && a.Kind != Static {
		specPath = path
	}
	if arrayBytes(a) > MaxInteger {
		l.report(Error, TooLarge, path+"/shape", fmt.Sprintf("array %s of shape %s takes more than 2^53 bytes", wording.Quote(a.Name), wording.Shape(a.Shape)), "make the batch or the row smaller")
	}
	if len(spec) > len(a.Shape) {
		l.report(Error, SpecRank, specPath, fmt.Sprintf("spec %s of array %s has %d entries, but shape %s has rank %d", wording.Plain(spec.String()), wording.Quote(a.Name), len(spec), wording.Shape(a.Shape), len(a.Shape)),
			"give at most one entry per dimension", Fact{"entries", int64(len(spec))}, Fact{"rank", int64(len(a.Shape))})
	}
	if l.checkSpecAxes(a, spec, specPath) && before == len(l.problems) {
		l.checkDivides(a, spec, path)
	}
	if before < len(l.problems) {
		return nil, t, false
	}
	s, err := sharding.New(l.mesh, spec)
	if err == nil {
		t, err = s.Tiling(a.Shape)
	}
	if err != nil { // not reached: the checks above report what sharding refuses
		l.report(Error, Indivisible, specPath, err.Error(), "")
		return nil, t, false
	}
	return s, t, l.checkRanges(a, t, specPath)
}

func (l *Layout) checkSpecAxes(a Array, spec sharding.PartitionSpec, path string) bool {
	ok := true
	used := map[string]int{}
	for d, entry := range spec {
		for _, name := range entry {
			e, dup := used[name]
			_, _, known := l.mesh.Axis(name)
			switch {
			case !known:
				ok = false
				l.report(Error, UnknownAxis, jsontext.Element(path, d), fmt.Sprintf("axis %s of array %s is not in %s", wording.Quote(name), wording.Quote(a.Name), l.mesh), l.axisHint(), Fact{"dimension", int64(d)})
			case dup:
				ok = false
				where := fmt.Sprintf("dimension %d and dimension %d", e, d)
				if e == d {
					where = fmt.Sprintf("dimension %d twice", d)
				}
				l.report(Error, DuplicateAxis, jsontext.Element(path, d), fmt.Sprintf("axis %s partitions %s of array %s", wording.Quote(name), where, wording.Quote(a.Name)),
					"an axis can partition one dimension once", Fact{"dimension", int64(d)}, Fact{"other", int64(e)})
			}
			used[name] = d
		}
	}
	return ok
}

func (l *Layout) axisHint() string {
	axes := l.mesh.Axes()
	if len(axes) == 0 {
		return "leave it out: the mesh has no axes"
	}
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = wording.Quote(a.Name)
	}
	return "use one of " + strings.Join(names, ", ")
}

func (l *Layout) checkDivides(a Array, spec sharding.PartitionSpec, path string) {
	for d, entry := range spec {
		tiles, by := 1, make([]string, 0, len(entry))
		for _, name := range entry {
			_, axis, _ := l.mesh.Axis(name)
			tiles *= axis.Size
			by = append(by, fmt.Sprintf("%s (size %d)", wording.Quote(name), axis.Size))
		}
		n := a.Shape[d]
		if n%tiles == 0 {
			continue
		}
		what := "axis"
		if len(by) > 1 {
			what = "axes"
		}
		shapePath := jsontext.Element(path+"/shape", d)
		if a.Kind != Data && a.Kind != Static {
			shapePath = path
		}
		l.report(Error, Indivisible, shapePath,
			fmt.Sprintf("dimension %d of array %s of shape %s is split %d ways by %s %s, but %d %% %d = %d", d, wording.Quote(a.Name), wording.Shape(a.Shape), tiles, what, strings.Join(by, ", "), n, tiles, n%tiles),
			l.divisibleHint(a, d, tiles), Fact{"size", int64(n)}, Fact{"tiles", int64(tiles)}, Fact{"remainder", int64(n % tiles)})
	}
}

// divisibleHint names the nearest sizes that divide. For a batch dimension they
// suit all arrays.
func (l *Layout) divisibleHint(a Array, d, tiles int) string {
	n := a.Shape[d]
	if d >= a.BatchDims {
		return fmt.Sprintf("the nearest sizes that divide: %s; or partition another dimension", nearest(n, tiles))
	}
	all := lcm(tiles, l.batchTiles(d))
	if a.BatchDims == 1 {
		return "use a batch of " + nearest(n, all)
	}
	return fmt.Sprintf("use %s as batch dimension %d", nearest(n, all), d)
}

// batchTiles returns the number that must divide a batch dimension, for all
// arrays, the mask and the way of loading.
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

// tilesOf returns the number of tiles that an entry makes. It ignores unknown
// axes.
func (l *Layout) tilesOf(entry []string) int {
	k := 1
	for i, name := range entry {
		if _, axis, ok := l.mesh.Axis(name); ok && !slices.Contains(entry[:i], name) {
			k *= axis.Size
		}
	}
	return k
}

func nearest(n, tiles int) string {
	if n < tiles {
		return fmt.Sprint(tiles)
	}
	return fmt.Sprintf("%d or %d", n-n%tiles, n-n%tiles+tiles)
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// checkRanges bounds the number of row ranges of an array in the process that
// has most devices, before anything computes the ranges.
func (l *Layout) checkRanges(a Array, t sharding.Tiling, path string) bool {
	if a.Kind == Static {
		return true
	}
	n := runs(a.Shape[:a.BatchDims], t.Tiles())
	if n = plus(0, n, int64(min(t.Count(), l.most))); n > MaxRanges {
		l.report(Error, TooManyRanges, path, fmt.Sprintf("array %s makes up to %d separate row ranges in a process, but may make %d", wording.Quote(a.Name), n, MaxRanges),
			"partition an earlier batch dimension, or make the earlier ones smaller", Fact{"ranges", n}, Fact{"limit", MaxRanges})
	}
	return n <= MaxRanges
}
