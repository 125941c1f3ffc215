package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// workload is a dataset and the arrays to load from it. A run chooses a topology
// for it.
type workload struct {
	r       *rand.Rand
	records int64
	fields  []source.Field
	arrays  []layout.ArraySpec // without specs
	order   string
	seed    int64
}

// Sizes are multiples of these numbers, so that many meshes divide them.
var dims = []int{1, 2, 4, 6, 8, 12}

func newWorkload(r *rand.Rand) *workload {
	w := &workload{r: r, records: 1 + r.Int64N(150), fields: random.Fields(r, dims...), order: "shuffle.1", seed: r.Int64N(1<<40) - 1<<39}
	w.fields[0].Name = "drawn"
	switch r.IntN(4) {
	case 0:
		w.order = "sequential.1"
	case 1:
		parts := 1 + r.Int64N(6)
		w.order = sampler.Local(parts, parts*(1+r.Int64N(8)))
	}
	for i := range 1 + r.IntN(4) {
		w.arrays = append(w.arrays, w.array(fmt.Sprintf("a/%d", i)))
	}
	return w
}

func (w *workload) array(name string) layout.ArraySpec {
	f := random.One(w.r, w.fields...)
	a := layout.ArraySpec{Name: name, Field: f.Name, Type: f.Type, RowShape: slices.Clone(f.Shape)}
	if w.r.IntN(2) == 0 {
		a.Type = f.Type.Narrow()
	}
	if len(f.Shape) > 0 && w.r.IntN(2) == 0 {
		a.Columns, a.RowShape[0] = w.columns(f.Shape[0])
	}
	return a
}

// columns chooses ranges in any order, possibly overlapping. Their sum has many divisors.
func (w *workload) columns(size int) (list [][2]int, sum int) {
	want := random.One(w.r, dims...)
	for sum < want {
		start := w.r.IntN(size)
		n := 1 + w.r.IntN(min(size-start, want-sum))
		list = append(list, [2]int{start, start + n})
		sum += n
	}
	return list, sum
}

// run is one topology and one way of dividing epochs into steps.
type run struct {
	doc      *layout.Document
	lay      *layout.Layout
	prefetch int
	workers  int
}

func (u run) String() string { return string(document.Canonical(u.doc)) }

// topology chooses a mesh with permuted devices of any ownership, a batch and
// specs. Size 0 means any batch size.
func (w *workload) topology(t *testing.T, size int, remainder string) run {
	for range 100 {
		d := &layout.Document{Mesh: w.mesh(), Arrays: slices.Clone(w.arrays), Batch: w.batch(size, remainder)}
		for i := range d.Arrays {
			d.Arrays[i].Spec = random.Spec(w.r, d.Mesh.Axes, append(slices.Clone(d.Batch.Size), d.Arrays[i].RowShape...))
		}
		lay, err := layout.Draft(d)
		if err != nil {
			t.Fatalf("%s: %v", document.Canonical(d), err)
		}
		if lay.Err() != nil { // such as a mask spec that does not divide
			continue
		}
		return run{doc: d, lay: lay, prefetch: w.r.IntN(5) - 1, workers: 1 + w.r.IntN(3)}
	}
	t.Fatal("no topology fits")
	return run{}
}

func (w *workload) mesh() layout.MeshSpec {
	axes, size := random.Axes(w.r, 64)
	s := layout.MeshSpec{Axes: axes}
	processes := 1 + w.r.IntN(min(size, 5))
	for _, i := range w.r.Perm(size) {
		s.Devices = append(s.Devices, mesh.Device{ID: 3*i + 1, Process: 2 * w.r.IntN(processes)})
	}
	return s
}

func (w *workload) batch(size int, remainder string) *layout.BatchSpec {
	b := &layout.BatchSpec{Remainder: remainder}
	if size == 0 {
		size = random.One(w.r, 1, 2, 4, 6, 8, 12, 24)
	}
	for w.r.IntN(2) == 0 && len(b.Size) < 3 {
		n := random.One(w.r, divisors(size)...)
		b.Size, size = append(b.Size, n), size/n
	}
	b.Size = append(b.Size, size)
	b.Extras = random.Some(w.r, layout.ExtraKey, layout.ExtraRecord)
	return b
}

func divisors(n int) (list []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

// source opens the dataset again, as every process does.
func (w *workload) source() *synthetic.Source { return synthetic.New(w.records, w.fields...) }

func (w *workload) String() string {
	var s []string
	for _, f := range w.fields {
		s = append(s, fmt.Sprintf("%s %s%v", f.Name, f.Type, f.Shape))
	}
	return fmt.Sprintf("%d records of %s, %s seed %d", w.records, strings.Join(s, ", "), w.order, w.seed)
}
