package strategy_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// The sets of the functions below, as in throughput_test.go.
const (
	chosenNeMo     = "NeMo, GPT-3 and Llama 3.1 70B: H100"
	chosenNeMo8    = "NeMo, GPT-3 and Llama 3.1 70B, 8 bits: H100"
	heldNeMo       = "NeMo, Llama 3.1 405B and Nemotron-4: H100"
	heldNeMo8      = "NeMo, Llama 3.1 405B and Nemotron-4, 8 bits: H100"
	chosenMaxText  = "MaxText, Llama 2 70B: H100"
	chosenMaxText8 = "MaxText, Llama 2 70B, 8 bits: H100"
	chosenSummary  = "NeMo 24.07, 8 bits: H100"
	blackwell8     = "Megatron-Bridge, 8 bits: GB200, GB300"
	blackwell      = "Megatron-Bridge, Llama 3.1 405B: GB200"
	manyNarrow     = "Megatron-Bridge, narrow experts: H100, B200, GB200, GB300"
	chosenTPU7     = "MaxText, Llama 2 70B and 3.1 405B: TPU v6e, v7"
	heldTPU7       = "MaxText, Llama 3.1 70B: TPU v7"
	narrowTPU      = "MaxText, narrow experts: TPU v7"
)

// nemotron returns the shape of a Nemotron-4 model (Parmar et al., arXiv 2402.16819, table
// 1, and Adler et al., arXiv 2406.11704, table 1): squared ReLU, and no biases.
func nemotron(layers, hidden, heads, vocab int) *strategy.Transformer {
	return &strategy.Transformer{Layers: layers, Hidden: hidden, Heads: heads, KVHeads: 8, FFN: 4 * hidden, Vocab: vocab, Sequence: 4096, Norm: "layer"}
}

// dgxcRuns has the runs of whole models in NVIDIA/dgxc-benchmarking: nemo_megatron,
// llama3.1, nemotron and maxtext, from commits 0b71cfda of 2025-02 and 143b90dd of 2025-03.
// The pages name splits and micro-batches, and no recomputation, so none is assumed. The
// settings of MaxText name one: it keeps queries, keys and values only.
func dgxcRuns() (runs []measured) {
	nemotron15, nemotron340 := nemotron(32, 6144, 48, 256000), nemotron(96, 18432, 96, 256000)
	for _, c := range []struct {
		sets                  [2]string // with 16 and with 8 bits
		name, preset          string
		model                 *strategy.Transformer
		tensor, pipe, context int
		fsdp                  int // the most; 0 for replicas
		chunks, micro         int
		devices, batch        int // devices and batch of the first run; the others double both
		seconds               [2][]float64
	}{
		{[2]string{chosenNeMo, chosenNeMo8}, "GPT-3 175B", "", gpt(96, 12288, 96, 51200), 4, 8, 1, 0, 12, 1, 128, 256,
			[2][]float64{{8.309, 8.408, 8.42, 8.453, 8.49}, {5.626, 5.725, 5.774, 5.82, 5.96}}},
		{[2]string{chosenNeMo, chosenNeMo8}, "Llama 3.1 70B", "llama3-70b", nil, 4, 4, 2, 0, 5, 1, 64, 128,
			[2][]float64{{14.72, 14.73, 14.8, 14.89, 14.92, 14.98}, {11.01, 10.93, 11.16, 11.18, 11.28, 11.39}}},
		{[2]string{heldNeMo, heldNeMo8}, "Llama 3.1 405B", "llama3-405b", nil, 8, 9, 2, 0, 7, 1, 576, 252,
			[2][]float64{{17.20, 17.52, 17.62}, {11.24, 11.31, 12.35}}},
		{[2]string{heldNeMo, heldNeMo8}, "Nemotron-4 15B", "", nemotron15, 4, 1, 1, 0, 1, 4, 16, 64,
			[2][]float64{{2.812, 2.824, 2.845, 2.859, 2.852, 2.875, 2.895, 2.887}, {2.039, 2.046, 2.048, 2.059, 2.075, 2.12, 2.094, 2.12}}},
		{[2]string{heldNeMo, heldNeMo8}, "Nemotron-4 340B", "", nemotron340, 8, 8, 1, 0, 12, 1, 128, 32,
			[2][]float64{{4.61, 4.67, 4.7, 4.73, 4.84}, {3.16, 3.21, 3.26, 3.34, 3.49}}},
		{[2]string{chosenMaxText, chosenMaxText8}, "Llama 2 70B", "llama2-70b", nil, 1, 1, 1, 256, 1, 2, 64, 128,
			[2][]float64{{6.999, 7.072, 7.153, 7.091, 7.084, 7.066}, {4.324, 4.556, 4.959, 5.043, 5.062, 4.93}}},
	} {
		for bits, list := range c.seconds {
			for i, seconds := range list {
				m, devices := c.model, c.devices<<i
				if m == nil {
					m = &strategy.Transformer{}
				}
				x := strategy.Training{Batch: int64(c.batch << i), MicroBatch: c.micro, Recomputation: strategy.None}
				mesh := map[string]int{strategy.Tensor: c.tensor, strategy.Pipe: c.pipe, strategy.Context: c.context}
				if mesh[strategy.Data] = devices / c.tensor / c.pipe / c.context; c.fsdp > 0 {
					// MaxText has 128 shards from 512 devices on
					mesh[strategy.FSDP] = min(devices, c.fsdp)
					if devices > c.fsdp {
						mesh[strategy.FSDP] = c.fsdp / 2
					}
					mesh[strategy.Data] = devices / mesh[strategy.FSDP]
					x.Recomputation, x.Precision = strategy.Full, maxtextTypes
				}
				if bits == 1 {
					x.Precision.Compute = "float8_e4m3fn"
				}
				r := measured{set: c.sets[bits], name: fmt.Sprintf("%s on %d, %d bits", c.name, devices, 16/(bits+1)), seconds: seconds, doc: split(m, "h100-80", devices, mesh, x)}
				r.doc.Model.Preset = c.preset
				r.interleave(c.chunks)
				r.doc.Search.ZeRO = []int{1}
				runs = append(runs, r)
			}
		}
	}
	return runs
}

// nemoRuns has the table of pre-training in docs/source/performance/performance_summary.md
// of NVIDIA/NeMo for 24.07, without GPT3-5B, GPT3-20B and Nemotron 8B and 22B, because no
// source names their sizes.
func nemoRuns() (runs []measured) {
	llama2 := &strategy.Transformer{Layers: 40, Hidden: 5120, Heads: 40, FFN: 13824, Gated: new(true), Vocab: 32000, Sequence: 4096}
	for _, c := range []struct {
		name, preset          string
		model                 *strategy.Transformer
		devices, batch, micro int
		tensor, pipe, context int
		chunks                int
		rate                  float64
	}{
		{"GPT-3 175B", "", gpt(96, 12288, 96, 51200), 128, 256, 1, 4, 8, 1, 6, 726},
		{"GPT-3 175B", "", gpt(96, 12288, 96, 51200), 512, 2048, 2, 4, 8, 1, 6, 782},
		{"Llama 2 7B", "llama2-7b", nil, 8, 128, 1, 1, 1, 1, 1, 16847},
		{"Llama 2 13B", "", llama2, 16, 128, 1, 1, 4, 1, 10, 8646},
		{"Llama 2 70B", "llama2-70b", nil, 64, 128, 1, 4, 4, 1, 20, 1707},
		{"Nemotron 340B", "", nemotron(96, 18432, 96, 256000), 128, 32, 1, 8, 8, 1, 12, 322},
		{"Llama 3 8B", "llama3-8b", nil, 8, 128, 1, 1, 1, 2, 1, 12036},
		{"Llama 3 70B", "llama3-70b", nil, 64, 128, 1, 4, 4, 2, 5, 1533},
	} {
		x := strategy.Training{Batch: int64(c.batch), MicroBatch: c.micro, Recomputation: strategy.None, Precision: strategy.Precision{Compute: "float8_e4m3fn"}}
		m := c.model
		if m == nil {
			m = &strategy.Transformer{Sequence: map[string]int{"llama2-7b": 4096, "llama2-70b": 4096}[c.preset]}
			if m.Sequence == 0 {
				m.Sequence = 8192
			}
		}
		r := measured{set: chosenSummary, name: fmt.Sprintf("%s on %d, NeMo 24.07", c.name, c.devices), rate: c.rate, doc: split(m, "h100-80", c.devices,
			map[string]int{strategy.Tensor: c.tensor, strategy.Pipe: c.pipe, strategy.Context: c.context, strategy.Data: c.devices / c.tensor / c.pipe / c.context}, x)}
		r.interleave(c.chunks)
		r.doc.Model.Preset, r.doc.Search.ZeRO = c.preset, []int{1}
		runs = append(runs, r)
	}
	return runs
}

// The shapes of gpt-oss-120b (OpenAI, arXiv 2508.10925, table 1) and of Qwen3 235B A22B
// (Qwen3 Technical Report, arXiv 2505.09388, table 2).
func gptOSS(sequence int) *strategy.Transformer {
	return &strategy.Transformer{
		Layers: 36, Hidden: 2880, Heads: 64, KVHeads: 8, HeadDim: 64, FFN: 2880, Gated: new(true), Vocab: 201088, Sequence: sequence,
		Experts: &strategy.Experts{Count: 128, Active: 4},
	}
}

func qwen235() *strategy.Transformer {
	return &strategy.Transformer{
		Layers: 94, Hidden: 4096, Heads: 64, KVHeads: 4, HeadDim: 128, FFN: 12288, Gated: new(true), Vocab: 151936, Sequence: 4096,
		Experts: &strategy.Experts{Count: 128, Active: 8, FFN: 1536},
	}
}

// blackwellRuns has more runs of docs/performance-summary.md in NVIDIA-NeMo/Megatron-Bridge,
// 25.11, and the example of llama3.1/README.md in NVIDIA/dgxc-benchmarking, commit
// 14fb6ae6 of 2025-10.
func blackwellRuns() (runs []measured) {
	llama := func() *strategy.Transformer { return &strategy.Transformer{Sequence: 8192} }
	for _, c := range []struct {
		set, name, preset, device           string
		model                               *strategy.Transformer
		devices, batch, micro               int
		fsdp, tensor, pipe, context, expert int
		chunks                              int
		rate, seconds                       float64
	}{
		{blackwell8, "Llama 3 8B", "llama3-8b", "gb300-279", llama(), 8, 128, 2, 1, 1, 1, 1, 1, 1, 37556, 0},
		{blackwell8, "Llama 3 70B", "llama3-70b", "gb300-279", llama(), 64, 256, 2, 64, 1, 1, 1, 1, 1, 4520, 0},
		{blackwell8, "Llama 3.1 405B", "llama3-405b", "gb300-279", llama(), 256, 1536, 1, 1, 2, 8, 2, 1, 4, 999, 0},
		{blackwell8, "Llama 3 8B", "llama3-8b", "gb200-186", llama(), 8, 128, 2, 1, 1, 1, 1, 1, 1, 31508, 0},
		{blackwell8, "Llama 3 70B", "llama3-70b", "gb200-186", llama(), 64, 256, 2, 64, 1, 1, 1, 1, 1, 4312, 0},
		{blackwell8, "Llama 3.1 405B", "llama3-405b", "gb200-186", llama(), 256, 1536, 1, 1, 4, 16, 1, 1, 4, 813, 0},
		{blackwell, "Llama 3.1 405B", "llama3-405b", "gb200-186", llama(), 128, 64, 1, 1, 4, 8, 2, 1, 8, 0, 9.347},
		{blackwell, "Llama 3.1 405B", "llama3-405b", "gb200-186", llama(), 256, 128, 1, 1, 4, 8, 2, 1, 8, 0, 9.479},
		{manyNarrow, "gpt-oss-120b", "", "h100-80", gptOSS(4096), 64, 512, 4, 1, 1, 4, 1, 8, 1, 5630, 0},
		{manyNarrow, "gpt-oss-120b", "", "b200-180", gptOSS(4096), 64, 512, 4, 1, 1, 1, 1, 8, 1, 8213, 0},
		{manyNarrow, "gpt-oss-120b", "", "gb200-186", gptOSS(8192), 64, 1280, 1, 1, 1, 1, 1, 64, 1, 15876, 0},
		{manyNarrow, "gpt-oss-120b", "", "gb300-279", gptOSS(8192), 64, 1280, 2, 1, 1, 1, 1, 64, 1, 18347, 0},
		{manyNarrow, "Qwen3 235B", "", "gb200-186", qwen235(), 256, 8192, 1, 1, 1, 8, 1, 32, 3, 4916, 0},
		{manyNarrow, "Qwen3 235B", "", "gb300-279", qwen235(), 256, 8192, 2, 1, 1, 4, 1, 16, 12, 6131, 0},
		{manyNarrow, "Qwen3 235B, 8 bits", "", "b200-180", qwen235(), 64, 1024, 1, 1, 1, 8, 1, 8, 2, 3269, 0},
	} {
		x := strategy.Training{Batch: int64(c.batch), MicroBatch: c.micro, Recomputation: strategy.None}
		if c.set == blackwell8 || c.name == "Qwen3 235B, 8 bits" {
			x.Precision.Compute = "float8_e4m3fn"
		}
		r := measured{set: c.set, name: fmt.Sprintf("%s on %d × %s", c.name, c.devices, c.device), rate: c.rate, seconds: c.seconds, doc: split(c.model, c.device, c.devices,
			map[string]int{strategy.FSDP: c.fsdp, strategy.Tensor: c.tensor, strategy.Pipe: c.pipe, strategy.Context: c.context, strategy.Expert: c.expert,
				strategy.Data: c.devices / c.fsdp / c.tensor / c.pipe / c.context / c.expert}, x)}
		r.interleave(c.chunks)
		r.doc.Model.Preset, r.doc.Search.ZeRO = c.preset, []int{1}
		runs = append(runs, r)
	}
	return runs
}

// recipeRuns has runs of training/trillium and training/ironwood in
// AI-Hypercomputer/tpu-recipes of 2024 and 2026, fully sharded. Those of Ironwood keep
// queries, keys, values and inputs of a layer, and compute the rest again.
func recipeRuns() (runs []measured) {
	for _, c := range []struct {
		set, name, preset, device string
		model                     *strategy.Transformer
		devices, micro            int
		seconds                   float64
		compute                   string
	}{
		{chosenTPU7, "Llama 2 70B", "llama2-70b", "tpu-v6e", &strategy.Transformer{Sequence: 4096}, 256, 4, 17.373, ""},
		{heldTPU7, "Llama 3.1 70B", "llama3-70b", "tpu-v7", &strategy.Transformer{Sequence: 8192}, 128, 2, 12.20, ""},
		{heldTPU7, "Llama 3.1 70B", "llama3-70b", "tpu-v7", &strategy.Transformer{Sequence: 8192}, 512, 2, 12.27, ""},
		{chosenTPU7, "Llama 3.1 405B", "llama3-405b", "tpu-v7", &strategy.Transformer{Sequence: 8192}, 512, 3, 98.34, ""},
		{heldTPU7, "Llama 3.1 70B, 8 bits", "llama3-70b", "tpu-v7", &strategy.Transformer{Sequence: 8192}, 128, 2, 7.93, "float8_e4m3fn"},
		{chosenTPU7, "Llama 3.1 405B, 8 bits", "llama3-405b", "tpu-v7", &strategy.Transformer{Sequence: 8192}, 512, 3, 64.37, "float8_e4m3fn"},
		{narrowTPU, "gpt-oss-120b", "", "tpu-v7", gptOSS(8192), 128, 10, 14.93, ""},
		{narrowTPU, "Qwen3 235B", "", "tpu-v7", qwen235(), 512, 16, 30.87, ""},
	} {
		x := strategy.Training{Batch: int64(c.devices * c.micro), MicroBatch: c.micro, Recomputation: strategy.Full, Precision: maxtextTypes}
		x.Precision.Compute = c.compute
		r := measured{set: c.set, name: fmt.Sprintf("%s on %d × %s", c.name, c.devices, c.device), seconds: c.seconds, doc: split(c.model, c.device, c.devices, map[string]int{strategy.FSDP: c.devices}, x)}
		r.doc.Model.Preset = c.preset
		runs = append(runs, r)
	}
	return runs
}
