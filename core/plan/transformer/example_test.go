package transformer_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// Grouped-query attention, a gated feed-forward block and no biases make Llama 3 8B.
func ExampleShape() {
	s := transformer.Shape{
		Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Gated: true, Vocab: 128256, Sequence: 8192,
	}
	fmt.Println(s.Parameters(), "parameters")
	fmt.Println(s.FLOPs().Step(transformer.NoRecomputation), "FLOPs per token")
	// Output:
	// 8030261248 parameters
	// 57912852480 FLOPs per token
}

// Sequence parallelism divides what tensor parallelism alone keeps on every device.
func ExampleShape_Activations() {
	gpt3, err := transformer.Preset("megatron-175b")
	if err != nil {
		panic(err)
	}
	for _, parallel := range []bool{false, true} {
		a, err := gpt3.Shape.Activations(transformer.Execution{
			Batch: 1, Tensor: 8, SequenceParallel: parallel, Recomputation: transformer.SelectiveRecomputation,
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(a.Dense.Paper, "bytes per layer, from", a.Dense.Low, "to", a.Dense.High)
	}
	// Output:
	// 327155712 bytes per layer, from 144703488 to 931282944
	// 106954752 bytes per layer, from 56623104 to 270637056
}
