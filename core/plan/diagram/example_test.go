package diagram_test

import (
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/diagram"
)

// This diagram is a text. Method SVG draws the same for a page.
func ExampleDiagram_Text() {
	d, err := diagram.Collective{Op: collective.AllGather, Devices: 2}.Draw()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(d.Text(60))
	// Output:
	// all-gather of 2 devices (ring)
	// Every device has one part of the array before, and all parts
	// after.
	// In 1 step, the busiest device sends 1 part. The array has 2
	// parts.
	//
	// before           step 1
	//   ┏━━━━━┯━━━━━┓    ┏━━━━━┯━━━━━┓
	// 0 ┃  1  │  ·  ┃  0 ┃  1  │ [2] ┃
	//   ┣━━━━━┿━━━━━┫    ┣━━━━━┿━━━━━┫
	// 1 ┃  ·  │  2  ┃  1 ┃ [1] │  2  ┃
	//   ┗━━━━━┷━━━━━┛    ┗━━━━━┷━━━━━┛
	//
	// A row is a device, a column a part of the array. What a step
	// has changed is marked.
}
