package hardware

import "slices"

// Efficiency is the share of its peak that a kind of device reaches in the matrix
// products of published training runs, in thousandths.
type Efficiency struct {
	Least, Most int
	Source      string
}

// efficiencies has the kinds with published runs, on them or on devices of the same
// family. GPUs reach a smaller share of their peak than TPUs, because they lower their
// clock under load.
var efficiencies = []struct {
	kinds []string
	Efficiency
}{
	{[]string{"a100-40", "a100-80"}, Efficiency{400, 750, "Narayanan et al., arXiv 2104.04473, table 1, and Korthikanti et al., arXiv 2205.05198, table 5"}},
	{[]string{"h100-80", "h200-141", "b200-180"}, Efficiency{350, 600, "mosaicml/llm-foundry, scripts/train/benchmarking, on H100"}},
	{[]string{"tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7"}, Efficiency{650, 900, "AI-Hypercomputer/maxtext, README.md of 2024, on v5e"}},
}

// anyKind is the efficiency of a device without published runs.
var anyKind = Efficiency{400, 750, "runs on A100, because none is published on this device"}

// EfficiencyOf returns the efficiency of the kind with a name, or of an unknown device.
func EfficiencyOf(kind string) Efficiency {
	for _, e := range efficiencies {
		if slices.Contains(e.kinds, kind) {
			return e.Efficiency
		}
	}
	return anyKind
}
