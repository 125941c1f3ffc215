package picture_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
)

func ExampleText() {
	d, _ := document.Parse([]byte(`{"meshfeed":1,"mesh":{"axes":[["data",2],["model",2]],"processes":2},
	  "arrays":{"image":{"shape":["B",8,8],"dtype":"float32","spec":["data",null,"model"]},
	            "label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":32}}`))
	l, _ := layout.New(d)
	fmt.Print(picture.Text(l, picture.Options{}))
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
