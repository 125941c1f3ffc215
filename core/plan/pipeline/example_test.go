package pipeline_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
)

// Four stages and eight micro-batches, with a last stage that also computes logits.
func ExampleBuild() {
	d := pipeline.Even(4, 10, 10, 10)
	d.Forward[3], d.Backward[3], d.Weight[3] = 12, 12, 12
	line, err := pipeline.Build(pipeline.OneFOneB, 4, 8, 1, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	idle, total := line.Bubble()
	fmt.Println(line.Span, "ticks;", idle, "of", total, "are idle; stage 0 keeps", line.PeakLive(0), "micro-batches")

	num, den := pipeline.BubbleShare(pipeline.OneFOneB, 4, 8, 1)
	fmt.Printf("equal stages: %d/%d are idle\n", num, den)

	// Output:
	// 378 ticks; 504 of 1512 are idle; stage 0 keeps 4 micro-batches
	// equal stages: 3/11 are idle
}
