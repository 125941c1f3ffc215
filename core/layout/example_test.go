package layout_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Two processes with two devices each feed a mesh with a model axis that does not partition
// the batch: each reads its half of the rows.
func ExampleNew() {
	l, err := layout.New(&layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 2}}, Processes: 2},
		Arrays: []layout.ArraySpec{
			{Name: "image", RowShape: []int{8, 8}, Type: dtype.Float32, Spec: sharding.P("data", nil, "model")},
		},
		Batch:   &layout.BatchSpec{Size: []int{32}},
		Dataset: &layout.DatasetSpec{Records: 1000},
	})
	if err != nil {
		panic(err)
	}
	p := l.Process(1)
	fmt.Println("rows", p.Rows)
	for _, b := range p.Blocks {
		fmt.Println(l.Arrays()[b.Array].Name, b.Index, "on", b.Holders)
	}
	fmt.Println(l.Totals().StepsPerEpoch, "steps")
	// Output:
	// rows [[16 32]]
	// image [16:32, 0:8, 0:4] on [2]
	// image [16:32, 0:8, 4:8] on [3]
	// 31 steps
}

// A program that reports faults reads them from a draft.
func ExampleDraft() {
	l, err := layout.Draft(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{128}, Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{30}},
	})
	if err != nil {
		panic(err)
	}
	for _, p := range l.Problems() {
		fmt.Println(p.Severity, p.Code, p.Path, p.Hint)
	}
	fmt.Println(l.BatchSize(), "rows")
	// Output:
	// error indivisible /arrays/x/shape/0 use a batch of 28 or 32
	// 30 rows
}
