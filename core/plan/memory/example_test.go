package memory_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/sharding"
)

func ExampleMeasure() {
	m, err := mesh.Uniform([]mesh.Axis{{Name: "fsdp", Size: 8}}, 1)
	if err != nil {
		panic(err)
	}
	u := memory.Measure(&memory.Tree{
		Mesh: m, Optimizer: memory.AdamW, Moments: memory.Float32, Master: memory.Float32,
		Parameters: []memory.Array{{Name: "w", Shape: []int{4096, 4096}, Element: memory.BFloat16, Spec: sharding.P("fsdp")}},
	})
	fmt.Println(u.Parameters[0].Part, u.Totals.Parameters, u.Totals.States, u.Totals.Gradients)
	// Output: [512 4096] 4194304 25165828 4194304
}

func ExamplePrecision_Of() {
	fmt.Println(memory.MixedPrecision().Of([]int{1_000_000_000}, memory.AdamW).Total())
	// Output: 16000000000
}
