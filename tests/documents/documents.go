// Package documents makes layouts for tests: from the text of a document, and at
// random.
package documents

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Digits is the example of the format's description.
const Digits = `{"meshfeed": 1,
 "mesh": {"axes": [["data", 4], ["model", 2]], "processes": 4},
 "arrays": {"image": {"shape": ["B", 8, 8], "dtype": "float32", "spec": ["data", null, "model"]},
            "label": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 256, "remainder": "drop"},
 "dataset": {"records": 1797}, "budget": {"device_bytes": 17179869184, "host_bytes": 8589934592}}`

// Layout makes the layout of a document's text.
func Layout(t testing.TB, text string) *layout.Layout {
	t.Helper()
	d, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return New(t, d)
}

// New makes the layout of a document.
func New(t testing.TB, d *layout.Document) *layout.Layout {
	t.Helper()
	l, err := layout.Draft(d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Large makes a document for a mesh of this many devices, eight per process.
func Large(devices int) *layout.Document {
	return &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: devices / 4}, {Name: "model", Size: 4}}, Processes: max(devices/8, 1)},
		Arrays: []layout.ArraySpec{
			{Name: "tokens", RowShape: []int{2048}, Type: dtype.Int32, Spec: sharding.P("data", "model")},
			{Name: "segment", RowShape: []int{2048}, Type: dtype.Int32, Spec: sharding.P("data", "model")},
			{Name: "weight", Type: dtype.Float32, Spec: sharding.P("data")},
		},
		Batch:   &layout.BatchSpec{Size: []int{devices}},
		Dataset: &layout.DatasetSpec{Records: 1 << 30},
	}
}

// Random makes a document without errors.
func Random(r *rand.Rand) *layout.Document {
	d := &layout.Document{Batch: &layout.BatchSpec{}}
	size := 1
	for a := range r.IntN(4) {
		n := []int{1, 2, 2, 3, 4}[r.IntN(5)]
		d.Mesh.Axes = append(d.Mesh.Axes, mesh.Axis{Name: string(rune('a' + a)), Size: n})
		size *= n
	}
	for i, id := range r.Perm(size) {
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{Process: i * 4 / size * (1 + r.IntN(2)), ID: id * (1 + id%2)})
	}
	ids := map[int]bool{}
	for i := range d.Mesh.Devices { // some ids are equal now: make them distinct
		for ids[d.Mesh.Devices[i].ID] {
			d.Mesh.Devices[i].ID++
		}
		ids[d.Mesh.Devices[i].ID] = true
	}
	for range 1 + r.IntN(2) {
		d.Batch.Size = append(d.Batch.Size, size*(1+r.IntN(2)))
	}
	if r.IntN(2) == 0 {
		d.Batch.Remainder = layout.Pad
	}
	if r.IntN(2) == 0 {
		d.Batch.Extras = []string{layout.ExtraRecord, layout.ExtraKey}[:1+r.IntN(2)]
	}
	for i := range 1 + r.IntN(4) {
		d.Arrays = append(d.Arrays, randomArray(r, d, fmt.Sprint("array", i), size))
	}
	d.Dataset = &layout.DatasetSpec{Records: int64(size*size*4 + r.IntN(100))}
	d.Loading = []string{layout.LoadProcess, layout.LoadGlobal, layout.LoadDevice, layout.LoadReshard}[r.IntN(4)]
	return d
}

// randomArray makes an array with sizes that divide by the size of the mesh.
func randomArray(r *rand.Rand, d *layout.Document, name string, size int) layout.ArraySpec {
	types := dtype.All()
	a := layout.ArraySpec{Name: name, Type: types[r.IntN(len(types))], Static: r.IntN(6) == 0}
	rank := r.IntN(3)
	for range rank {
		a.RowShape = append(a.RowShape, size*r.IntN(3))
	}
	if !a.Static {
		rank += len(d.Batch.Size)
	}
	a.Spec = make(sharding.PartitionSpec, r.IntN(rank+1))
	for _, n := range r.Perm(len(d.Mesh.Axes)) {
		if len(a.Spec) > 0 && r.IntN(3) > 0 {
			k := r.IntN(len(a.Spec))
			a.Spec[k] = append(a.Spec[k], d.Mesh.Axes[n].Name)
		}
	}
	return a
}
