package collective_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

// Four devices have the numbers 1, 2, 3 and 4. After the all-reduce, each has
// their sum.
func ExampleTrace() {
	start := collective.State{{{1, true}}, {{2, true}}, {{3, true}}, {{4, true}}}
	states, err := collective.Trace(collective.AllReduce, collective.Tree, start)
	if err != nil {
		panic(err)
	}
	for _, s := range states {
		fmt.Println(s[0][0].Number, s[1][0].Number, s[2][0].Number, s[3][0].Number)
	}
	// Output:
	// 4 6 3 4
	// 10 6 3 4
	// 10 10 3 4
	// 10 10 10 10
}

// Four devices have the array 1 2 3 4 each. After the reduce-scatter, device i
// has element i of the sum.
func ExampleTrace_reduceScatter() {
	start := make(collective.State, 4)
	for d := range start {
		start[d] = []collective.Value{{1, true}, {2, true}, {3, true}, {4, true}}
	}
	states, err := collective.Trace(collective.ReduceScatter, collective.Ring, start)
	if err != nil {
		panic(err)
	}
	last := states[len(states)-1]
	fmt.Println(len(states), "steps:", last[0][0].Number, last[1][1].Number, last[2][2].Number, last[3][3].Number)
	// Output:
	// 3 steps: 4 8 12 16
}

func ExampleSteps() {
	list, err := collective.Steps(collective.AllGather, collective.Ring, 3)
	if err != nil {
		panic(err)
	}
	for i, step := range list {
		for _, m := range step {
			fmt.Printf("step %d: chunk %d from %d to %d.\n", i, m.Chunk, m.From, m.To)
		}
	}
	// Output:
	// step 0: chunk 0 from 0 to 1.
	// step 0: chunk 1 from 1 to 2.
	// step 0: chunk 2 from 2 to 0.
	// step 1: chunk 2 from 0 to 1.
	// step 1: chunk 0 from 1 to 2.
	// step 1: chunk 1 from 2 to 0.
}

// The gradients of a model with 8 billion parameters in bfloat16, all-reduced by
// 8 devices of a node and by 8 devices of different nodes.
func ExampleOver() {
	kind, err := hardware.Find("h100-80")
	if err != nil {
		panic(err)
	}
	cluster, err := kind.Cluster(64, 8)
	if err != nil {
		panic(err)
	}
	for _, stride := range []int{1, 8} {
		path := cluster.Axis(stride, 8)
		c := collective.Over(path, collective.AllReduce, 16_000_000_000)
		fmt.Printf("%s: %d bytes in %d ms\n", path.Tier(), c.Sent, c.Ns/1_000_000)
	}
	// Output:
	// node: 28000000000 bytes in 62 ms
	// network: 28000000000 bytes in 560 ms
}

func ExampleGroups() {
	m, err := mesh.Uniform([]mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}, 1)
	if err != nil {
		panic(err)
	}
	for _, axis := range []string{"data", "model"} {
		groups, err := collective.Groups(m, []string{axis})
		if err != nil {
			panic(err)
		}
		fmt.Println(axis, groups)
	}
	// Output:
	// data [[0 2 4 6] [1 3 5 7]]
	// model [[0 1] [2 3] [4 5] [6 7]]
}
