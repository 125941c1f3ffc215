package strategy_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// BenchmarkAdvise measures whole reports. The page recomputes one at every move of a
// slider.
func BenchmarkAdvise(b *testing.B) {
	for _, c := range []struct {
		preset  string
		device  string
		devices int
		batch   int64
	}{
		{"llama3-8b", "h100-80", 8, 128}, {"gpt3-175b", "a100-80", 1024, 1536}, {"mixtral-8x7b", "h100-80", 64, 512},
		{"llama3-70b", "h100-80", 65536, 65536}, {"mixtral-8x7b", "h100-80", 65536, 65536}, {"llama3-70b", "tpu-v5p", 65536, 65536}, {"llama3-405b", "h100-80", 1 << 20, 1 << 20},
	} {
		b.Run(fmt.Sprintf("%s/%d", c.preset, c.devices), func(b *testing.B) {
			d := &strategy.Document{Model: strategy.Model{Preset: c.preset}, Training: strategy.Training{Batch: c.batch}, Cluster: strategy.Cluster{Device: c.device, Devices: c.devices}}
			if c.device == "tpu-v5p" {
				d.Cluster.PerNode = 4096
			}
			evaluated := int64(0)
			for b.Loop() {
				r, err := strategy.Advise(d)
				if err != nil {
					b.Fatal(err)
				}
				evaluated = r.Evaluated
			}
			b.ReportMetric(float64(evaluated), "candidates")
		})
	}
}
