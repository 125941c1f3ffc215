package layout_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
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

func ExampleParse() {
	d, err := layout.Parse([]byte(`{
	  "meshfeed": 1,
	  "mesh": {"axes": [["data", 4]], "processes": 1},
	  "arrays": {"x": {"shape": ["B", 16], "dtype": "float32", "spec": [["data"]]}},
	  "batch": {"size": 64, "remainder": "drop"}}`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", d.Canonical())

	_, err = layout.Parse([]byte(`{"meshfeed": 1, "mesh": {"Axes": []}}`))
	fmt.Println(err)
	// Output:
	// {"meshfeed":1,"mesh":{"axes":[["data",4]]},"arrays":{"x":{"shape":["B",16],"dtype":"float32","spec":["data"]}},"batch":{"size":64}}
	// layout: /mesh/Axes: "Axes" is not a key; write "axes": keys are matched by case
}

func ExampleLayout_Err() {
	d, _ := layout.Parse([]byte(`{"meshfeed":1,"mesh":{"axes":[["data",4]]},
	  "arrays":{"x":{"shape":["B",128],"dtype":"float32","spec":["data"]}},"batch":{"size":30}}`))
	l, _ := layout.New(d)
	fmt.Println(l.Err())
	// Output:
	// layout: dimension 0 of array "x" of shape (30, 128) is split 4 ways by axis "data" (size 4), but 30 % 4 = 2; use a batch of 28 or 32
}

func ExampleLayout_Text() {
	d, _ := layout.Parse([]byte(`{"meshfeed":1,"mesh":{"axes":[["data",2],["model",2]],"processes":2},
	  "arrays":{"image":{"shape":["B",8,8],"dtype":"float32","spec":["data",null,"model"]},
	            "label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":32}}`))
	l, _ := layout.New(d)
	fmt.Print(l.Text(layout.PictureOptions{}))
	// Output:
	// Mesh('data': 2, 'model': 2)  4 devices  2 processes
	// batch 32
	// 8.12 KiB per batch  2.06 KiB per device  12.2 KiB per process for 3 batches
	//
	// image  float32 (32, 8, 8)  P('data', None, 'model')  shard (16, 8, 4)  2 KiB
	//   ↓ dimension 0 over data  → dimension 2 over model
	//          0:4      4:8
	//       ┏━━━━━━━━┯━━━━━━━━┓
	//  0:16 ┃  p0 0  │  p0 1  ┃
	//       ┣━━━━━━━━┿━━━━━━━━┫
	// 16:32 ┃  p1 2  │  p1 3  ┃
	//       ┗━━━━━━━━┷━━━━━━━━┛
	//
	// label  int32 (32,)  P('data',)  shard (16,)  64 B  on 2 devices
	//   ↓ dimension 0 over data
	//       ┏━━━━━━━━━━┓
	//  0:16 ┃  p0 0=1  ┃
	//       ┣━━━━━━━━━━┫
	// 16:32 ┃  p1 2=3  ┃
	//       ┗━━━━━━━━━━┛
	//
	// p1 3: device 3 of process 1  0=1: replicas  ━┃ between processes
	//
	// process  devices  rows read                      per step
	// p0             2       0:16  ▕████████········▏  4.06 KiB
	// p1             2      16:32  ▕········████████▏  4.06 KiB
}
