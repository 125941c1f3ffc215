package strategy_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// measured is a published run.
type measured struct {
	set, name  string
	doc        *strategy.Document
	seconds    float64 // seconds of a step, or 0
	rate       float64 // tokens per second and device, or 0
	teraflops  float64 // per second and device: operations of the model, or 0
	hardware   float64 // per second and device: operations with full recomputation, or 0
	parameters int64   // published parameters of the model, or 0
}

// step returns the published time of a step in nanoseconds.
func (m *measured) step(r *strategy.Report) float64 {
	batch, devices := float64(m.doc.Training.Batch), float64(m.doc.Cluster.Devices)
	t := m.doc.Model.Transformer
	switch {
	case m.rate > 0:
		return batch * float64(t.Sequence) / devices / m.rate * 1e9
	case m.teraflops > 0:
		return float64(r.Model.GigaFLOPsPerStep) / devices / m.teraflops * 1e6
	case m.hardware > 0: // Narayanan et al., arXiv 2104.04473, equation 3
		s, l, h, v := float64(t.Sequence), float64(t.Layers), float64(t.Hidden), float64(t.Vocab)
		return 96 * batch * s * l * h * h * (1 + s/(6*h) + v/(16*l*h)) / devices / m.hardware / 1000
	}
	return m.seconds * 1e9
}

// outside lists the runs with times outside the interval. The library of the runs with ZeRO
// stage 3 used a tenth of the network's bandwidth. Models below 10^9 parameters, and
// sequences far above 8,192 tokens, reach less of the peak.
var outside = []string{
	"175B on 1536 × 1", "a100-80 7b, sequence 1024, on 8",
	"h100-80 7b, sequence 65536, on 8", "h100-80 7b, sequence 32768, on 8", "h100-80 760m, sequence 2048, on 8",
	"a100-40 125m, sequence 2048, on 128", "a100-40 125m, sequence 2048, on 64", "a100-40 125m, sequence 2048, on 32", "a100-40 125m, sequence 2048, on 16", "a100-40 125m, sequence 2048, on 8",
}

// TestPublishedTimes compares expected times with published ones. The guide has the
// result for each set of runs.
func TestPublishedTimes(t *testing.T) {
	var sets []string
	inside, ratios := map[string]int{}, map[string][]float64{}
	for _, m := range publishedRuns(t) {
		m.doc.Search.Margin = new(0)
		r := advise(t, m.doc)
		if len(r.Candidates) != 1 || r.Candidates[0].Time == nil || m.parameters > 0 && r.Model.Parameters != m.parameters {
			t.Fatalf("%s %s: model %+v, candidates %+v, problems %+v, pruned %+v", m.set, m.name, r.Model, r.Candidates, r.Problems, r.Pruned)
		}
		got, want := r.Candidates[0].Time, m.step(r)
		if ratios[m.set] == nil {
			sets = append(sets, m.set)
		}
		ratios[m.set] = append(ratios[m.set], float64(got.Step)/want)
		in := float64(got.Low) <= want && want <= float64(got.High)
		if in {
			inside[m.set]++
		}
		if in == slices.Contains(outside, m.name) {
			t.Errorf("%s: in the interval: %v", m.name, in)
		}
		if m.set == chosenA100 && !r.Candidates[0].Fits {
			t.Errorf("%s does not fit", m.name)
		}
		t.Logf("%s, %s: published %.3f s, expected %.3f s, from %.3f s to %.3f s, fits: %v", m.set, m.name, want/1e9, float64(got.Step)/1e9, float64(got.Low)/1e9, float64(got.High)/1e9, r.Candidates[0].Fits)
	}
	for _, s := range sets {
		list := slices.Sorted(slices.Values(ratios[s]))
		if median := list[len(list)/2]; s != zero3 && s != manySmall && (median < 0.7 || median > 1.3) {
			t.Errorf("%s: the median of expected over published times is %.2f", s, median)
		}
	}
	checkGuide(t, sets, inside, ratios)
}

// checkGuide checks that the guide has a row for each set: its runs inside of the interval,
// and the median and the range of expected over published times.
func checkGuide(t *testing.T, sets []string, inside map[string]int, ratios map[string][]float64) {
	t.Helper()
	guide, err := os.ReadFile("../../../docs/guides/strategy.py")
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for _, s := range sets {
		runs += len(ratios[s])
		list := slices.Sorted(slices.Values(ratios[s]))
		line := fmt.Sprintf("| %s | %d of %d | %.2f | %.2f to %.2f |", s, inside[s], len(list), list[len(list)/2], list[0], list[len(list)-1])
		if !strings.Contains(string(guide), line) {
			t.Errorf("the guide has no row %s", line)
		}
	}
	if text := fmt.Sprintf("against %d published runs", runs); !strings.Contains(string(guide), text) {
		t.Errorf("the guide does not say %q", text)
	}
}

// publishedRuns lists the runs of all sets.
func publishedRuns(t *testing.T) []measured {
	t.Helper()
	return slices.Concat(megatronTable(), korthikantiTable(), llamaRuns(), megatronRuns(), otherRuns(), foundryRuns(t), maxtextRuns(), palmRuns(), bridgeRuns(), autoModelRuns(), dgxcRuns(), nemoRuns(), blackwellRuns(), recipeRuns())
}

// split returns a document for one mesh.
func split(m *strategy.Transformer, device string, devices int, mesh map[string]int, t strategy.Training) *strategy.Document {
	t.Schedule = string(pipeline.OneFOneB)
	return &strategy.Document{
		Model: strategy.Model{Transformer: m}, Training: t, Search: fixed(mesh),
		Cluster: strategy.Cluster{Device: device, Devices: devices},
	}
}

func gpt(layers, hidden, heads, vocab int) *strategy.Transformer {
	return &strategy.Transformer{
		Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden, Vocab: vocab, Sequence: 2048,
		Gated: new(false), Biases: new(true), Norm: "layer", Positions: "learned", Dropout: new(true), Tied: new(true),
	}
}

// The names of sets in the guide. The sets chosen… chose the default efficiencies, and
// half of the runs of each set without such a name. The others test them.
const (
	chosenA100 = "Megatron, table 1; Korthikanti, table 5: A100"
	heldA100   = "Megatron, table 2; MT-NLG; BLOOM; GPT-NeoX: A100"
	zero3      = "Megatron, table 2, ZeRO stage 3: A100"
	chosenH100 = "MPT: H100"
	heldH100   = "Llama 3, table 4; AutoModel: H100"
	eightBits  = "Megatron-Bridge, 8 bits: H100, B200"
	manySmall  = "Megatron-Bridge, AutoModel, 128 experts: H100, B200"
	chosenTPU  = "MaxText: TPU v5e"
	heldTPU    = "MaxText, PaLM: TPU v5p, v4"
)

var foundry = map[string]string{"a100": "MPT: A100", "h100": chosenH100}

// megatronTable has the runs of Narayanan et al., arXiv 2104.04473, table 1. Section 5.1
// names the interleaved schedule, but neither chunks nor micro-batches. The split of GPT-3
// is from Megatron-LM's README.
func megatronTable() (runs []measured) {
	for _, c := range []struct {
		name                                      string
		heads, hidden, layers, tensor, pipe, gpus int
		batch                                     int64
		micro, chunks                             int
		teraflops                                 float64
	}{
		{"1.7B", 24, 2304, 24, 1, 1, 32, 512, 16, 1, 137},
		{"3.6B", 32, 3072, 30, 2, 1, 64, 512, 16, 1, 138},
		{"7.5B", 32, 4096, 36, 4, 1, 128, 512, 16, 1, 142},
		{"18.4B", 48, 6144, 40, 8, 1, 256, 1024, 8, 1, 135},
		{"39.1B", 64, 8192, 48, 8, 2, 512, 1536, 1, 2, 138},
		{"76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 1, 3, 140},
		{"145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 1, 2, 148},
		{"310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 1, 2, 155},
		{"529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 1, 3, 163},
		{"GPT-3", 96, 12288, 96, 8, 16, 1024, 1536, 1, 1, 140},
		{"1008.0B", 160, 25600, 128, 8, 64, 3072, 3072, 1, 2, 163},
	} {
		m := measured{set: chosenA100, name: c.name, hardware: c.teraflops, doc: split(gpt(c.layers, c.hidden, c.heads, 51200), "a100-80", c.gpus,
			map[string]int{strategy.Tensor: c.tensor, strategy.Pipe: c.pipe, strategy.Data: c.gpus / c.tensor / c.pipe}, megatron(c.batch, c.micro))}
		m.interleave(c.chunks)
		runs = append(runs, m)
	}
	return runs
}

// interleave sets ZeRO stage 0, and with several chunks the interleaved schedule.
func (m *measured) interleave(chunks int) {
	m.doc.Search.ZeRO = []int{0}
	if chunks > 1 {
		m.doc.Training.Schedule, m.doc.Training.Chunks = string(pipeline.Interleaved), chunks
	}
}

// korthikantiTable has the runs of Korthikanti et al., arXiv 2205.05198, tables 3 and 5.
func korthikantiTable() (runs []measured) {
	for _, c := range []struct {
		name                              string
		heads, hidden, layers, pipe, gpus int
		batch                             int64
		micro, chunks                     int
		full, present                     float64
	}{
		{"22B", 64, 6144, 48, 1, 8, 4, 4, 1, 1.42, 1.10},
		{"175B", 96, 12288, 96, 8, 64, 64, 1, 3, 18.13, 13.75},
		{"530B", 128, 20480, 105, 35, 280, 280, 1, 3, 49.05, 37.83},
		{"1T", 160, 25600, 128, 64, 512, 512, 1, 1, 94.42, 71.49},
	} {
		for _, again := range []string{strategy.Full, strategy.Selective} {
			m := measured{set: chosenA100, name: c.name + " " + again, seconds: c.full, doc: split(gpt(c.layers, c.hidden, c.heads, 51200), "a100-80", c.gpus,
				map[string]int{strategy.Tensor: 8, strategy.Pipe: c.pipe}, megatron(c.batch, c.micro))}
			m.interleave(c.chunks)
			if again == strategy.Selective {
				m.seconds, m.doc.Training.Recomputation, m.doc.Training.SequenceParallel = c.present, again, nil
			}
			runs = append(runs, m)
		}
	}
	return runs
}

// llamaRuns has Llama 3 405B (Llama Team, arXiv 2407.21783, table 4).
func llamaRuns() (runs []measured) {
	for _, c := range []struct {
		devices, data, context, sequence int
		batch                            int64
		utilization                      float64
	}{
		{8192, 64, 1, 8192, 2048, 0.43},
		{16384, 128, 1, 8192, 2048, 0.41},
		{16384, 8, 16, 131072, 128, 0.38},
	} {
		m := measured{set: heldH100, name: fmt.Sprintf("%d devices, sequence %d", c.devices, c.sequence), teraflops: c.utilization * 989, doc: split(
			&strategy.Transformer{Sequence: c.sequence}, "h100-80", c.devices,
			map[string]int{strategy.Pipe: 16, strategy.Data: c.data, strategy.Context: c.context, strategy.Tensor: 8},
			strategy.Training{Batch: c.batch, MicroBatch: 1, Recomputation: strategy.None})}
		m.doc.Model.Preset = "llama3-405b"
		m.interleave(8)
		m.doc.Search.ZeRO = []int{1}
		runs = append(runs, m)
	}
	return runs
}

// megatronRuns has table 2 of Narayanan et al., arXiv 2104.04473, and the times of
// Smith et al., arXiv 2201.11990, section 2.4. It leaves out the runs with ZeRO stage 3 on
// 1,120 and 2,240 devices, because fsdp divides no dimension of an array there.
func megatronRuns() (runs []measured) {
	for _, c := range []struct {
		billions, devices, pipe int
		batch                   int64
		micro                   int
		teraflops               float64
	}{
		{175, 384, 0, 1536, 4, 144}, {175, 768, 0, 1536, 2, 88}, {175, 1536, 0, 1536, 1, 44}, {530, 640, 0, 2560, 4, 138},
		{175, 384, 12, 1536, 1, 153}, {175, 768, 12, 1536, 1, 149}, {175, 1536, 12, 1536, 1, 141},
		{530, 560, 35, 2240, 1, 171}, {530, 1120, 35, 2240, 1, 167}, {530, 2240, 35, 2240, 1, 159},
	} {
		m, set, mesh := gpt(96, 12288, 96, 51200), heldA100, map[string]int{}
		if c.billions == 530 {
			m = gpt(105, 20480, 128, 51200)
		}
		if c.pipe == 0 {
			set, mesh[strategy.FSDP] = zero3, c.devices
		} else {
			mesh[strategy.Tensor], mesh[strategy.Pipe], mesh[strategy.Data] = 8, c.pipe, c.devices/c.pipe/8
		}
		runs = append(runs, measured{set: set, name: fmt.Sprintf("%dB on %d × %d", c.billions, c.devices/max(1, 8*c.pipe), max(1, 8*c.pipe)), hardware: c.teraflops,
			doc: split(m, "a100-80", c.devices, mesh, megatron(c.batch, c.micro))})
	}
	for i, seconds := range []float64{60.1, 50.2, 44.4} {
		data := 8 + 2*i
		runs = append(runs, measured{set: heldA100, name: fmt.Sprintf("MT-NLG on %d", 280*data), seconds: seconds,
			doc: split(gpt(105, 20480, 128, 51200), "a100-80", 280*data, map[string]int{strategy.Tensor: 8, strategy.Pipe: 35, strategy.Data: data}, megatron(1920, 1))})
	}
	for i := range runs {
		runs[i].doc.Search.ZeRO = []int{0}
	}
	return runs
}

func megatron(batch int64, micro int) strategy.Training {
	return strategy.Training{Batch: batch, MicroBatch: micro, Recomputation: strategy.Full, Attention: strategy.Plain, SequenceParallel: new(false)}
}

// otherRuns has BLOOM (README.md of train/tr11-176B-ml in bigscience-workshop/bigscience).
// Its nodes have 4 Omni-Path links of 100 Gbit/s. It also has GPT-NeoX-20B (Black et al.,
// arXiv 2204.06745, sections 2.3 and 3), on nodes with 4 adapters of 200 Gbit/s.
func otherRuns() []measured {
	bloom, neox := gpt(70, 14336, 112, 250880), gpt(44, 6144, 64, 50432)
	bloom.Positions, neox.Positions, neox.Tied = "rotary", "rotary", new(false)
	runs := []measured{
		{set: heldA100, name: "BLOOM 176B", seconds: 105, doc: split(bloom, "a100-80", 384, map[string]int{strategy.Tensor: 4, strategy.Pipe: 12, strategy.Data: 8}, megatron(2048, 2))},
		{set: heldA100, name: "GPT-NeoX-20B", hardware: 117, doc: split(neox, "a100-40", 96, map[string]int{strategy.Tensor: 2, strategy.Pipe: 4, strategy.Data: 12}, megatron(1536, 4))},
	}
	runs[0].doc.Cluster.NetworkBytesPerSecond = 4 * 12_500_000_000 / 8
	runs[1].doc.Cluster.NetworkBytesPerSecond = 4 * 25_000_000_000 / 8
	for i := range runs {
		runs[i].doc.Search.ZeRO = []int{1}
	}
	return runs
}

// foundryRuns has the table of scripts/train/benchmarking/README.md in
// mosaicml/llm-foundry: models of the MPT family, fully sharded.
func foundryRuns(t *testing.T) (runs []measured) {
	f, err := os.Open("testdata/llm-foundry.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sizes := map[string]*strategy.Transformer{
		"125m": gpt(12, 768, 12, 50368), "350m": gpt(24, 1024, 16, 50368), "760m": gpt(24, 1536, 12, 50368), "1b": gpt(24, 2048, 16, 50368),
		"3b": gpt(32, 2560, 20, 50368), "7b": gpt(32, 4096, 32, 50368), "13b": gpt(40, 5120, 40, 50368), "30b": gpt(48, 7168, 56, 50368), "70b": gpt(80, 8192, 64, 50368),
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var device, size, again string
		var sequence, devices, micro, accumulated int
		var rate float64
		var parameters int64
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if _, err := fmt.Sscan(lines.Text(), &device, &size, &sequence, &devices, &micro, &accumulated, &again, &rate, &parameters); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		m := *sizes[size]
		m.Sequence, m.Dropout = sequence, new(false)
		x := strategy.Training{
			Batch: int64(devices * micro * accumulated), MicroBatch: micro, Recomputation: again,
			Precision: strategy.Precision{Weights: "float32", Gradients: "float32"},
		}
		runs = append(runs, measured{set: foundry[device[:4]], name: fmt.Sprintf("%s %s, sequence %d, on %d", device, size, sequence, devices), rate: rate, parameters: parameters,
			doc: split(&m, device, devices, map[string]int{strategy.FSDP: devices}, x)})
	}
	return runs
}

// maxtextTypes has the types of arrays in MaxText and T5X.
var maxtextTypes = strategy.Precision{Weights: "float32", Gradients: "float32"}

// maxtextRuns has runs of MaxText on TPUs (README.md of AI-Hypercomputer/maxtext in 2024,
// settings in MaxText/configs). Their collectives over tensor overlap with computation. It
// leaves out runs that offload activations to the host, and runs without settings there.
// The models are scaled by powers of two from one with 16 layers of 2048, 16 heads and 7168
// hidden units.
func maxtextRuns() (runs []measured) {
	model := func(layers, hidden, heads, ffn int) *strategy.Transformer {
		return &strategy.Transformer{Layers: layers, Hidden: hidden, Heads: heads, HeadDim: 128, FFN: ffn, Vocab: 32000, Sequence: 2048, Gated: new(true)}
	}
	for _, c := range []struct {
		name      string
		model     *strategy.Transformer
		batch     int
		teraflops [6]float64 // on 1, 2, 4, 8, 16 and 32 slices of 256 chips
	}{
		{"16B", model(32, 8192, 32, 14336), 6, [6]float64{120, 117, 117, 115, 111, 108}},
		{"32B", model(32, 8192, 64, 28672), 4, [6]float64{132, 128, 126, 125, 123, 119}},
		{"64B", model(64, 8192, 64, 28672), 2, [6]float64{118, 112, 110, 108, 105, 99}},
	} {
		for i, teraflops := range c.teraflops {
			slices := 1 << i
			d := split(c.model, "tpu-v5e", 256*slices, map[string]int{strategy.Data: slices, strategy.FSDP: 256},
				strategy.Training{Batch: int64(256 * slices * c.batch), MicroBatch: c.batch, Recomputation: strategy.Full, Precision: maxtextTypes})
			d.Cluster.PerNode, d.Search.ZeRO = 256, []int{0}
			runs = append(runs, measured{set: chosenTPU, name: fmt.Sprintf("v5e %s on %d × 256", c.name, slices), teraflops: teraflops, doc: d})
		}
	}
	for _, c := range []struct {
		name                       string
		model                      *strategy.Transformer
		devices, tensor, perDevice int
		recomputation              string
		teraflops                  float64
	}{
		{"32B", model(32, 8192, 64, 28672), 64, 4, 7, strategy.Selective, 328},
		{"64B", model(64, 8192, 64, 28672), 64, 4, 3, strategy.Selective, 323},
		{"128B", model(64, 16384, 64, 28672), 128, 8, 1, strategy.Selective, 315},
		{"128B", model(64, 16384, 64, 28672), 256, 8, 1, strategy.Selective, 315},
		{"256B", model(64, 16384, 128, 57344), 512, 8, 1, strategy.Selective, 316},
		{"512B", model(128, 16384, 128, 57344), 512, 8, 2, strategy.Full, 294},
	} {
		d := split(c.model, "tpu-v5p", c.devices, map[string]int{strategy.Tensor: c.tensor, strategy.FSDP: c.devices / c.tensor},
			strategy.Training{Batch: int64(c.devices * c.perDevice), MicroBatch: c.perDevice * c.tensor, Recomputation: c.recomputation, Precision: maxtextTypes, Overlap: []strategy.AxisOverlap{{Axis: strategy.Tensor, Overlap: true}}})
		runs = append(runs, measured{set: heldTPU, name: fmt.Sprintf("v5p %s on %d", c.name, c.devices), teraflops: c.teraflops, doc: d})
	}
	return runs
}

// palmRuns has PaLM (Chowdhery et al., arXiv 2204.02311, sections 4 and 4.1). Its
// collectives between the pods do not overlap with computation.
func palmRuns() []measured {
	palm := &strategy.Transformer{Layers: 118, Hidden: 18432, Heads: 48, KVHeads: 1, HeadDim: 256, FFN: 73728, Gated: new(true), Vocab: 256000, Tied: new(true), Sequence: 2048}
	d := split(palm, "tpu-v4", 6144, map[string]int{strategy.Data: 2, strategy.FSDP: 256, strategy.Tensor: 12}, strategy.Training{
		Batch: 2048, MicroBatch: 4, Recomputation: strategy.Full, Precision: maxtextTypes, Overlap: []strategy.AxisOverlap{{Axis: strategy.Data}, {Axis: strategy.Tensor, Overlap: true}},
	})
	d.Search.ZeRO = []int{0}
	d.Cluster.PerNode, d.Cluster.NetworkBytesPerSecond = 3072, 81_000_000_000_000/8/6144 // 81 Tbit/s of all chips
	return []measured{{set: heldTPU, name: "PaLM 540B", rate: 238_300. / 6144, doc: d}}
}

// bridgeRuns has the runs of docs/performance-summary.md in NVIDIA-NeMo/Megatron-Bridge,
// 25.11, on H100 and B200 with matrix products of 8 bits: dense models, and Qwen3 30B A3B
// (Qwen3 Technical Report, arXiv 2505.09388, table 2).
func bridgeRuns() (runs []measured) {
	for _, c := range []struct {
		name, preset, device string
		layers, devices      int
		mesh                 map[string]int
		batch                int64
		micro, chunks        int
		rate                 float64
	}{
		{"Llama 3 8B", "llama3-8b", "h100-80", 32, 8, map[string]int{strategy.FSDP: 8}, 128, 1, 1, 14451},
		{"Llama 3 70B", "llama3-70b", "h100-80", 80, 64, map[string]int{strategy.Tensor: 4, strategy.Pipe: 8, strategy.Data: 2}, 128, 1, 2, 1602},
		{"Llama 3 405B", "llama3-405b", "h100-80", 126, 1024, map[string]int{strategy.Tensor: 8, strategy.Pipe: 8, strategy.Context: 2, strategy.Data: 8}, 512, 1, 8, 292},
		{"Llama 3 8B", "llama3-8b", "b200-180", 32, 8, map[string]int{strategy.Data: 8}, 128, 2, 1, 30624},
		{"Qwen3 30B", "", "h100-80", 48, 16, map[string]int{strategy.Pipe: 2, strategy.Expert: 8}, 512, 2, 24, 5275},
		{"Qwen3 30B", "", "b200-180", 48, 8, map[string]int{strategy.Expert: 8}, 512, 1, 1, 9299},
		{"Llama 3 405B", "llama3-405b", "b200-180", 126, 128, map[string]int{strategy.Tensor: 4, strategy.Pipe: 8, strategy.Context: 2, strategy.Data: 2}, 64, 1, 8, 661},
	} {
		x := strategy.Training{Batch: c.batch, MicroBatch: c.micro, Recomputation: strategy.None, Precision: strategy.Precision{Compute: "float8_e4m3fn"}}
		set, m := eightBits, &strategy.Transformer{Layers: c.layers, Sequence: 8192}
		if c.preset == "" {
			set, m = manySmall, &strategy.Transformer{
				Layers: c.layers, Hidden: 2048, Heads: 32, KVHeads: 4, HeadDim: 128, FFN: 6144, Gated: new(true), Vocab: 151936, Sequence: 4096,
				Experts: &strategy.Experts{Count: 128, Active: 8, FFN: 768},
			}
		}
		r := measured{set: set, name: fmt.Sprintf("%s on %d × %s", c.name, c.devices, c.device), rate: c.rate, doc: split(m, c.device, c.devices, c.mesh, x)}
		r.interleave(c.chunks)
		r.doc.Model.Preset, r.doc.Search.ZeRO = c.preset, []int{1}
		runs = append(runs, r)
	}
	return runs
}

// autoModelRuns has the runs of docs/performance-summary.md in NVIDIA-NeMo/Automodel of 2026
// with models that the planner can describe: matrix products of 16 bits, without pipelines.
// The page does not name the recomputation. Without it, the models would not fit.
func autoModelRuns() []measured {
	qwen := &strategy.Transformer{
		Layers: 48, Hidden: 2048, Heads: 32, KVHeads: 4, HeadDim: 128, FFN: 6144, Gated: new(true), Vocab: 151936, Sequence: 4096,
		Experts: &strategy.Experts{Count: 128, Active: 8, FFN: 768},
	}
	x := func(batch int64, micro int) strategy.Training {
		return strategy.Training{Batch: batch, MicroBatch: micro, Recomputation: strategy.Full}
	}
	runs := []measured{
		{set: heldH100, name: "Llama 3 70B on 64", seconds: 18.90, doc: split(&strategy.Transformer{Sequence: 8192}, "h100-80", 64, map[string]int{strategy.Context: 2, strategy.FSDP: 32}, x(128, 1))},
		{set: manySmall, name: "Qwen3 30B on 8 × h100-80, 16 bits", seconds: 21.773, doc: split(qwen, "h100-80", 8, map[string]int{strategy.Expert: 8}, x(512, 4))},
	}
	runs[0].doc.Model.Preset = "llama3-70b"
	for i := range runs {
		runs[i].doc.Search.ZeRO = []int{1}
	}
	return runs
}

// TestStagesOfLlama3 checks the stages of Llama 3 405B [arXiv 2407.21783, section 3.3.2].
// The first one, with the embedding, and the last one, with the head, have one layer less.
func TestStagesOfLlama3(t *testing.T) {
	for _, m := range llamaRuns() {
		for _, g := range advise(t, m.doc).Stages {
			if end := g.Embedding || g.Head; end && g.Layers != 7 || !end && g.Layers != 8 {
				t.Errorf("%s: stage %d has %d layers", m.name, g.Number, g.Layers)
			}
		}
	}
}
