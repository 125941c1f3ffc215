package strategy_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// Llama 3 8B on one node: its training state does not fit into one device, so ZeRO divides
// the states of the optimizer.
func ExampleAdvise() {
	report, err := strategy.Advise(&strategy.Document{
		Model:    strategy.Model{Preset: "llama3-8b"},
		Training: strategy.Training{Tokens: 1 << 20},
		Cluster:  strategy.Cluster{Device: "h100-80", Devices: 8},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	best := report.Candidates[report.Best]
	fmt.Println(best.Mesh, best.MicroBatches, "micro-batches of", best.MicroBatch)
	fmt.Printf("%.1f GB of states, %.1f GB of activations\n", float64(best.Memory.Weights+best.Memory.Gradients+best.Memory.Optimizer)/1e9, float64(best.Memory.Activations)/1e9)
	fmt.Println("bound by", best.Time.Bound)
	fmt.Println(report.Layout.Arrays[0].Name, report.Layout.Arrays[0].Spec)
	// Output:
	// [{data 8}] 16 micro-batches of 1
	// 30.1 GB of states, 26.9 GB of activations
	// bound by compute
	// tokens P('data',)
}
