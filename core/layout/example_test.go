package layout_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Two processes with two devices each feed a mesh whose model axis does not
// partition the batch: each reads its half of the rows.
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

func ExampleLayout_Err() {
	d, _ := document.Parse([]byte(`{"meshfeed":1,"mesh":{"axes":[["data",4]]},
	  "arrays":{"x":{"shape":["B",128],"dtype":"float32","spec":["data"]}},"batch":{"size":30}}`))
	l, _ := layout.New(d)
	fmt.Println(l.Err())
	// Output:
	// layout: dimension 0 of array "x" of shape (30, 128) is split 4 ways by axis "data" (size 4), but 30 % 4 = 2; use a batch of 28 or 32
}
