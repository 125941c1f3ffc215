package hardware

import "slices"

// Efficiency is the share of its peak that a kind of device reaches in the matrix
// products of published training runs, in thousandths.
type Efficiency struct {
	Least, Most int
	Source      string
}

// NarrowExpert is the width of an expert below which its matrices are too narrow for the
// usual share of the peak.
const NarrowExpert = 4096

// efficiencies has the kinds with published runs, on them or on devices of the same family. One
// half of the runs chose the intervals, and the other half tests them (throughput_test.go in
// core/plan/strategy). An interval has the shares that make the planner's expected times equal
// the published ones, rounded outward to 5 %. These are runs of models above 10^9 parameters,
// with up to 8,192 tokens per example. GPUs reach a smaller share of their peak than TPUs,
// because they lower their clock under load. In 8 bits the peak doubles, but attention stays in
// 16 bits.
var efficiencies = []struct {
	kinds []string
	eight bool // products of 8 bits
	Efficiency
}{
	{[]string{"a100-40", "a100-80", "a100-pcie"}, false, Efficiency{400, 750, "Narayanan et al., arXiv 2104.04473, table 1, and Korthikanti et al., arXiv 2205.05198, table 5"}},
	{hopperBlackwell, false, Efficiency{350, 700, "MPT in mosaicml/llm-foundry, GPT-3 and Llama 3.1 70B in NeMo, and Llama 2 70B in MaxText (NVIDIA/dgxc-benchmarking), on H100"}},
	{hopperBlackwell, true, Efficiency{300, 600, "GPT-3 and Llama 3.1 70B in NeMo, Llama 2 70B in MaxText (NVIDIA/dgxc-benchmarking), and the summary of NeMo 24.07, on H100"}},
	{[]string{"tpu-v5e"}, false, Efficiency{650, 900, "README.md of AI-Hypercomputer/maxtext, 2024"}},
	{[]string{"tpu-v4", "tpu-v5p"}, false, Efficiency{650, 850, "PaLM, arXiv 2204.02311, and README.md of AI-Hypercomputer/maxtext, 2024"}},
	{[]string{"tpu-v6e", "tpu-v7"}, false, Efficiency{550, 750, "Llama 2 70B and 3.1 405B in AI-Hypercomputer/tpu-recipes"}},
	{[]string{"tpu-v7"}, true, Efficiency{500, 600, "Llama 3.1 405B in AI-Hypercomputer/tpu-recipes"}},
}

var hopperBlackwell = []string{"h100-80", "h200-141", "b200-180", "gb200-186", "gb300-279"}

// anyKind is the efficiency of a device without published runs.
var anyKind = Efficiency{400, 750, "runs on A100, because none is published on this device"}

// narrow has the efficiencies of models with narrow experts, with 16 and with 8 bits.
// Libraries differ more than devices do.
var narrow = [2]Efficiency{
	{100, 600, "gpt-oss-120b and Qwen3 30B in Megatron-Bridge, AutoModel and MaxText, which have narrow experts too"},
	{50, 300, "Qwen3 30B and 235B in Megatron-Bridge, which have narrow experts too"},
}

// EfficiencyOf returns the efficiency of the kind with a name, or of an unknown device, for
// products of a format.
func EfficiencyOf(kind string, p Precision) Efficiency {
	found := anyKind
	for _, e := range efficiencies {
		if slices.Contains(e.kinds, kind) && (!e.eight || p.eight()) {
			found = e.Efficiency
		}
	}
	return found
}

// NarrowEfficiency returns the efficiency of a model with experts narrower than
// NarrowExpert, on any device.
func NarrowEfficiency(p Precision) Efficiency {
	if p.eight() {
		return narrow[1]
	}
	return narrow[0]
}

func (p Precision) eight() bool { return p == FP8 || p == INT8 }
