package transformer_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

func gpt(layers, hidden, heads, vocab, sequence int) transformer.Shape {
	return transformer.Shape{
		Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden, Vocab: vocab, Tied: true, Sequence: sequence,
		Biases: true, Norm: transformer.LayerNorm, Positions: transformer.Learned,
	}
}

func llama(layers, hidden, heads, kvHeads, ffn, vocab int) transformer.Shape {
	return transformer.Shape{Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads, FFN: ffn, Gated: true, Vocab: vocab, Sequence: 4096}
}

func with(s transformer.Shape, change func(*transformer.Shape)) transformer.Shape {
	change(&s)
	return s
}

func tied(s *transformer.Shape) { s.Tied = true }

func gemma(s *transformer.Shape) { s.Tied, s.HeadDim = true, 256 }

func qwen(s *transformer.Shape) { s.QKVBiases = true }

func neox(s *transformer.Shape) { s.Positions, s.Tied = transformer.Rotary, false }

func experts(count, active int) func(*transformer.Shape) {
	return func(s *transformer.Shape) { s.Experts = &transformer.Experts{Count: count, Active: active} }
}

// TestParameters compares counts with the counts of published weights. The sizes are from
// config.json on the model card. The counts are from the safetensors index, or from the
// report that presents the model.
func TestParameters(t *testing.T) {
	for _, m := range []struct {
		name       string
		shape      transformer.Shape
		parameters int64
	}{
		{"GPT-2", gpt(12, 768, 12, 50257, 1024), 124_439_808},
		{"GPT-2 medium", gpt(24, 1024, 16, 50257, 1024), 354_823_168},
		{"GPT-2 large", gpt(36, 1280, 20, 50257, 1024), 774_030_080},
		{"GPT-2 XL", gpt(48, 1600, 25, 50257, 1024), 1_557_611_200},
		{"OPT-6.7B", gpt(32, 4096, 32, 50272, 2050), 6_658_473_984}, // its table of positions has two rows more than the sequence
		{"Pythia-6.9B", with(gpt(32, 4096, 32, 50432, 2048), neox), 6_857_302_016},
		{"Llama-2-7B", llama(32, 4096, 32, 32, 11008, 32000), 6_738_415_616},
		{"Llama-2-13B", llama(40, 5120, 40, 40, 13824, 32000), 13_015_864_320},
		{"Llama-2-70B", llama(80, 8192, 64, 8, 28672, 32000), 68_976_648_192},
		{"Llama-3-8B", llama(32, 4096, 32, 8, 14336, 128256), 8_030_261_248},
		{"Llama-3-70B", llama(80, 8192, 64, 8, 28672, 128256), 70_553_706_496},
		{"Llama-3.1-405B", llama(126, 16384, 128, 8, 53248, 128256), 405_853_388_800},
		{"Llama-3.2-1B", with(llama(16, 2048, 32, 8, 8192, 128256), tied), 1_235_814_400},
		{"TinyLlama", llama(22, 2048, 32, 4, 5632, 32000), 1_100_048_384},
		{"Mistral-7B", llama(32, 4096, 32, 8, 14336, 32000), 7_241_732_096},
		{"Phi-3.5-mini", llama(32, 3072, 32, 32, 8192, 32064), 3_821_079_552},
		{"Gemma-2B", with(llama(18, 2048, 8, 1, 16384, 256000), gemma), 2_506_172_416},
		{"Gemma-7B", with(llama(28, 3072, 16, 16, 24576, 256000), gemma), 8_537_680_896},
		{"Qwen2.5-7B", with(llama(28, 3584, 28, 4, 18944, 152064), qwen), 7_615_616_512},
		{"Qwen2.5-72B", with(llama(80, 8192, 64, 8, 29568, 152064), qwen), 72_706_203_648},
		{"Mixtral-8x7B", with(llama(32, 4096, 32, 8, 14336, 32000), experts(8, 2)), 46_702_792_704},
		{"Mixtral-8x22B", with(llama(56, 6144, 48, 8, 16384, 32000), experts(8, 2)), 140_620_634_112},
		{"DBRX", dbrx, 131_596_523_520},
		// These two normalize queries and keys, with scales that a Shape does not have.
		{"OLMoE-1B-7B", olmoe, 6_919_161_856 - 16*2*2048},
		{"Qwen3-30B-A3B", qwen3, 30_532_122_624 - 48*2*128},
	} {
		if err := m.shape.Check(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if got := m.shape.Parameters(); got != m.parameters {
			t.Errorf("%s has %d parameters, published are %d", m.name, got, m.parameters)
		}
	}
}

// Mixtures of many small experts: the sizes are from config.json on the model cards.
var (
	dbrx  = with(llama(40, 6144, 48, 8, 10752, 100352), experts(16, 4))
	olmoe = with(llama(16, 2048, 16, 16, 1024, 50304), experts(64, 8))
	qwen3 = with(llama(48, 2048, 32, 4, 768, 151936), func(s *transformer.Shape) {
		s.HeadDim = 128
		experts(128, 8)(s)
	})
)

// TestActive compares the parameters that one token uses with the reports, which round
// or cut them.
func TestActive(t *testing.T) {
	for _, m := range []struct {
		name  string
		shape transformer.Shape
		want  int64
		unit  int64
	}{
		{"Mixtral-8x7B", with(llama(32, 4096, 32, 8, 14336, 32000), experts(8, 2)), 13, 1e9},  // Jiang et al. 2024
		{"Mixtral-8x22B", with(llama(56, 6144, 48, 8, 16384, 32000), experts(8, 2)), 39, 1e9}, // the release's announcement
		{"DBRX", dbrx, 36, 1e9},           // the model card
		{"OLMoE-1B-7B", olmoe, 13, 1e8},   // Muennighoff et al. 2024, arXiv 2409.02060
		{"Qwen3-30B-A3B", qwen3, 33, 1e8}, // the model card
	} {
		if got := m.shape.Active(); got <= (m.want-1)*m.unit || got >= (m.want+1)*m.unit {
			t.Errorf("%s has %d active parameters, published are %d of %d", m.name, got, m.want, m.unit)
		}
	}
	dense := llama(32, 4096, 32, 8, 14336, 32000)
	if dense.Active() != dense.Parameters() {
		t.Errorf("a dense model has %d active parameters of %d", dense.Active(), dense.Parameters())
	}
}

// TestExpertLayers counts the parameters of a model with experts in each third layer,
// with shared experts, and with biases: by hand from the sizes.
func TestExpertLayers(t *testing.T) {
	s := transformer.Shape{
		Layers: 7, Hidden: 8, Heads: 4, KVHeads: 2, FFN: 24, Gated: true, Vocab: 50, Tied: true, Sequence: 16, Biases: true,
		Experts: &transformer.Experts{Count: 6, Active: 2, Every: 3, FFN: 10, Shared: 3},
	}
	attention := 8*8 + 8 + 2*(8*4+4) + 8*8 + 8
	norms := 2 * 8
	dense := 2*(8*24+24) + 24*8 + 8
	expert := 2*(8*10+10) + 10*8 + 8
	shared := 2*(8*30+30) + 30*8 + 8
	router := 8 * 6
	want := int64(50*8 + 7*(attention+norms) + 5*dense + 2*(6*expert+shared+router) + 8)
	if got := s.Parameters(); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	if got, want := s.Active(), want-2*4*int64(expert); got != want {
		t.Errorf("%d active parameters, want %d", got, want)
	}
	for layer := range 7 {
		if got, want := s.ExpertLayers(layer, layer+1) == 1, layer == 2 || layer == 5; got != want {
			t.Errorf("layer %d has experts: %v", layer, got)
		}
	}
}

// TestMegatronParameters compares with equation 2 of Narayanan et al. (arXiv
// 2104.04473), 12·l·h²·(1 + 13/12h + (V+s)/12lh), which leaves out the final norm,
// and with the counts in its table 1.
func TestMegatronParameters(t *testing.T) {
	for _, m := range megatron {
		s := gpt(m.layers, m.hidden, m.heads, 51200, 2048)
		l, h := int64(m.layers), int64(m.hidden)
		if got, want := s.Parameters(), 12*l*h*h+13*l*h+(51200+2048)*h+2*h; got != want {
			t.Errorf("%s: %d parameters, want %d", m.billions, got, want)
		}
		if got := fmt.Sprintf("%.1f", float64(s.Parameters())/1e9); got != m.billions {
			t.Errorf("%s: %s billion parameters", m.billions, got)
		}
	}
}

// megatron has the models of table 1 of Narayanan et al.
var megatron = []struct {
	billions              string
	heads, hidden, layers int
}{
	{"1.7", 24, 2304, 24}, {"3.6", 32, 3072, 30}, {"7.5", 32, 4096, 36}, {"18.4", 48, 6144, 40}, {"39.1", 64, 8192, 48},
	{"76.1", 80, 10240, 60}, {"145.6", 96, 12288, 80}, {"310.1", 128, 16384, 96}, {"529.6", 128, 20480, 105}, {"1008.0", 160, 25600, 128},
}

func TestPresets(t *testing.T) {
	counts := map[string]int64{
		"gpt2": 124_439_808, "gpt2-xl": 1_557_611_200, "llama2-7b": 6_738_415_616, "llama2-70b": 68_976_648_192,
		"llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496, "llama3-405b": 405_853_388_800, "mixtral-8x7b": 46_702_792_704, "deepseek-v3": 671_026_404_352,
		"gpt3-175b":    174_604_259_328, // Brown et al. table D.1: 174,600 M
		"megatron-22b": 22_074_273_792, "megatron-175b": 174_615_846_912, "megatron-530b": 529_600_819_200, "megatron-1t": 1_008_038_758_400,
	}
	for _, p := range transformer.Presets() {
		if err := p.Shape.Check(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if got, want := p.Shape.Parameters(), counts[p.Name]; got != want {
			t.Errorf("%s has %d parameters, want %d", p.Name, got, want)
		}
		if p.Title == "" || p.Source == "" {
			t.Errorf("%s has no title or no source", p.Name)
		}
		found, err := transformer.Preset(p.Name)
		if err != nil || found.Title != p.Title {
			t.Errorf("%s: found %v, %v", p.Name, found, err)
		}
		delete(counts, p.Name)
	}
	if len(counts) > 0 {
		t.Errorf("no presets: %v", counts)
	}
}

// TestPresetIsACopy changes the experts of a preset, and asks for it again.
func TestPresetIsACopy(t *testing.T) {
	p, err := transformer.Preset("mixtral-8x7b")
	if err != nil {
		t.Fatal(err)
	}
	p.Shape.Experts.Count = 1
	for _, q := range transformer.Presets() {
		if q.Shape.Experts != nil {
			q.Shape.Experts.Count = 1
		}
	}
	if p, err = transformer.Preset("mixtral-8x7b"); err != nil || p.Shape.Experts.Count != 8 {
		t.Errorf("the preset has %d experts (%v), want 8", p.Shape.Experts.Count, err)
	}
}

// TestShard splits the parts over devices.
func TestShard(t *testing.T) {
	s := llama(2, 64, 8, 2, 96, 50)
	s.Experts = &transformer.Experts{Count: 4, Active: 1}
	parts := map[string]transformer.Part{}
	for _, p := range s.Parts() {
		parts[p.Name] = p
	}
	for _, c := range []struct {
		part           string
		tensor, expert int
		want           string
	}{
		{"embedding/tokens", 1, 1, "[50 64]"},
		{"embedding/tokens", 8, 1, "[7 64]"}, // 56 rows
		{"head", 4, 1, "[64 13]"},
		{"final_norm/scale", 4, 2, "[64]"},
		{"layers/attention/query/kernel", 4, 1, "[64 16]"},
		{"layers/attention/query/kernel", 3, 1, "no"},
		{"layers/attention/query/kernel", 16, 1, "no"},
		{"layers/attention/output/kernel", 2, 1, "[32 64]"},
		{"layers/attention/output/kernel", 16, 1, "no"},
		{"layers/attention/key/kernel", 2, 1, "[64 8]"},
		{"layers/attention/key/kernel", 8, 1, "[64 8]"}, // four devices have the same head
		{"layers/attention/key/kernel", 3, 1, "no"},
		{"layers/experts/up/kernel", 4, 2, "[2 64 24]"},
		{"layers/experts/down/kernel", 4, 4, "[1 24 64]"},
		{"layers/experts/down/kernel", 1, 3, "no"},
		{"layers/experts/down/kernel", 5, 1, "no"},
		{"layers/experts/down/kernel", 192, 1, "no"},
		{"layers/router/kernel", 8, 4, "[64 4]"},
	} {
		got := "no"
		if shape, ok := parts[c.part].Shard(c.tensor, c.expert); ok {
			got = fmt.Sprint(shape)
		}
		if got != c.want {
			t.Errorf("%s over %d × %d devices: %s, want %s", c.part, c.tensor, c.expert, got, c.want)
		}
	}
}

// TestDeepSeekV3 compares the parameters of DeepSeek-V3 with its checkpoint, which has
// 671,026,419,200 in its 61 layers, embedding and head. Among these, 58 × 256 are biases of
// routers that no gradient changes (DeepSeek-AI, arXiv 2412.19437, section 2.1.2). A token
// activates 37 billion.
func TestDeepSeekV3(t *testing.T) {
	p, err := transformer.Preset("deepseek-v3")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Shape.Parameters(), int64(671_026_419_200-58*256); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	if active := p.Shape.Active(); active < 37_000_000_000 || active > 38_000_000_000 {
		t.Errorf("%d parameters are active", active)
	}
	if n := p.Shape.ExpertLayers(0, 61); n != 58 || p.Shape.ExpertLayers(0, 3) != 0 || p.Shape.ExpertLayers(2, 4) != 1 {
		t.Errorf("%d layers have experts", n)
	}
}
