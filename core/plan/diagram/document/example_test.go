package document_test

import (
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/core/plan/diagram/document"
)

func ExampleDraw() {
	d, err := document.Draw([]byte(`{"meshfeed":1,"diagram":{"mesh":{"axes":[["data",2],["model",2]]}}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(d.Text(60))
	// Output:
	// Groups of Mesh('data': 2, 'model': 2)
	// A collective over an axis runs in every group of devices
	// that differ only in that axis.
	//
	// over data                     over model
	//          model 0   model 1             model 0   model 1
	//        ┏━━━━━━━━━┳━━━━━━━━━┓         ┏━━━━━━━━━┯━━━━━━━━━┓
	// data 0 ┃    0    ┃    1    ┃  data 0 ┃    0    │    1    ┃
	//        ┠─────────╂─────────┨         ┣━━━━━━━━━┿━━━━━━━━━┫
	// data 1 ┃    2    ┃    3    ┃  data 1 ┃    2    │    3    ┃
	//        ┗━━━━━━━━━┻━━━━━━━━━┛         ┗━━━━━━━━━┷━━━━━━━━━┛
	//
	// 2 groups over data: {0, 2} {1, 3}
	// 2 groups over model: {0, 1} {2, 3}
}
