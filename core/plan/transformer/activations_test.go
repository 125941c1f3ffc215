package transformer_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

const (
	flash = transformer.FlashAttention
	plain = transformer.PlainAttention
)

// activations returns the counts, and fails the test for an error.
func activations(t *testing.T, s transformer.Shape, e transformer.Execution) *transformer.Activations {
	t.Helper()
	a, err := s.Activations(e)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// korthikanti has the models of table 3 of Korthikanti et al. (arXiv 2205.05198), which all
// have 2,048 tokens and t = 8, with their micro-batch. The bytes per layer follow table 2,
// worked out by hand.
var korthikanti = []struct {
	preset      string
	batch       int
	stream      int64 // s·b·h
	scores      int64 // 5·a·s/h
	sequential  int64 // without any parallelism
	parallel    int64 // tensor parallel
	sequence    int64 // tensor and sequence parallel
	selective   int64 // tensor parallel, selective recomputation
	recommended int64 // tensor and sequence parallel, selective recomputation
}{
	// 5·64·2048/6144 is 106⅔.
	{"megatron-22b", 4, 50_331_648, 0, 7_079_985_152, 1_325_400_064, 884_998_144, 654_311_424, 213_909_504},
	{"megatron-175b", 1, 25_165_824, 80, 2_868_903_936, 578_813_952, 358_612_992, 327_155_712, 106_954_752},
	{"megatron-530b", 1, 41_943_040, 64, 4_110_417_920, 880_803_840, 513_802_240, 545_259_520, 178_257_920},
	{"megatron-1t", 1, 52_428_800, 64, 5_138_022_400, 1_101_004_800, 642_252_800, 681_574_400, 222_822_400},
}

// TestKorthikanti compares the bytes per layer with table 2 of the paper.
func TestKorthikanti(t *testing.T) {
	for _, m := range korthikanti {
		p, err := transformer.Preset(m.preset)
		if err != nil {
			t.Fatal(err)
		}
		if m.scores > 0 && m.sequential != m.stream*(34+m.scores) {
			t.Fatalf("%s: the table contradicts itself", m.preset)
		}
		for _, c := range []struct {
			name      string
			execution transformer.Execution
			want      int64
		}{
			{"sequential", transformer.Execution{}, m.sequential},
			{"tensor", transformer.Execution{Tensor: 8}, m.parallel},
			{"sequence", transformer.Execution{Tensor: 8, SequenceParallel: true}, m.sequence},
			{"selective", transformer.Execution{Tensor: 8, Recomputation: selective}, m.selective},
			{"sequence and selective", transformer.Execution{Tensor: 8, SequenceParallel: true, Recomputation: selective}, m.recommended},
			{"full", transformer.Execution{Tensor: 8, Recomputation: full}, 2 * m.stream},
			{"sequence and full", transformer.Execution{Tensor: 8, SequenceParallel: true, Recomputation: full}, 2 * m.stream / 8},
		} {
			c.execution.Batch, c.execution.Attention = m.batch, plain
			if got := activations(t, p.Shape, c.execution).Dense.Paper; got != c.want {
				t.Errorf("%s, %s: %d bytes per layer, want %d", m.preset, c.name, got, c.want)
			}
		}
	}
}

// TestKorthikantiSavings compares with section 5 of the paper: selective
// recomputation saves 70 % of the activations of GPT-3 and 65 % of MT-NLG.
func TestKorthikantiSavings(t *testing.T) {
	for preset, percent := range map[string]int64{"megatron-175b": 70, "megatron-530b": 65} {
		p, _ := transformer.Preset(preset)
		all := activations(t, p.Shape, transformer.Execution{Batch: 1, Attention: plain}).Dense.Paper
		kept := activations(t, p.Shape, transformer.Execution{Batch: 1, Attention: plain, Recomputation: selective}).Dense.Paper
		if got := (100*(all-kept) + all/2) / all; got != percent {
			t.Errorf("%s: %d %% saved, the paper says %d %%", preset, got, percent)
		}
	}
}

// TestEnds compares embedding and head with section 4.3 of the paper: s·b·h for the
// embedding, and 4·s·b·h·(1 + V/h) for final norm, head and logits.
func TestEnds(t *testing.T) {
	p, _ := transformer.Preset("megatron-22b")
	const tokens, h, v = 4 * 2048, 6144, 51200
	for _, c := range []struct {
		execution        transformer.Execution
		embedding, final int64
	}{
		{transformer.Execution{Batch: 4}, tokens * h, 4*tokens*h + 4*tokens*v},
		{transformer.Execution{Batch: 4, Tensor: 8}, tokens * h, 4*tokens*h + 4*tokens*v/8},
		{transformer.Execution{Batch: 4, Tensor: 8, SequenceParallel: true}, tokens * h / 8, (4*tokens*h + 4*tokens*v) / 8},
		{transformer.Execution{Batch: 4, Context: 2}, tokens * h / 2, (4*tokens*h + 4*tokens*v) / 2},
		{transformer.Execution{Batch: 4, ElementBytes: 4}, tokens * h, 8*tokens*h + 4*tokens*v},
	} {
		a := activations(t, p.Shape, c.execution)
		if a.Embedding.Paper != c.embedding || a.Final.Paper != c.final {
			t.Errorf("%+v: embedding %d and final %d bytes, want %d and %d", c.execution, a.Embedding.Paper, a.Final.Paper, c.embedding, c.final)
		}
	}
}

// TestEndBounds compares the bounds of embedding and head with counts by hand: 32
// tokens, h = 8, V = 50. Token ids have 4 bytes. The final norm keeps two float32
// arrays, two statistics for each token and its scale. Logits, softmax and gradients take
// 16 bytes: 2 + 4 + 4 and 4 + 2 in 16 bits, and 4 + 4 + 4 with a temporary copy in 32.
func TestEndBounds(t *testing.T) {
	s := transformer.Shape{Layers: 1, Hidden: 8, Heads: 4, FFN: 24, Vocab: 50, Sequence: 16, Dropout: true}
	const tokens, stream = 32, 32 * 8
	for _, bytes := range []int64{2, 4} {
		a := activations(t, s, transformer.Execution{Batch: 2, ElementBytes: int(bytes)})
		embedding := transformer.Bytes{Low: 0, Paper: stream, High: stream + 4*tokens}
		final := transformer.Bytes{
			Low: bytes*2*stream + 4*tokens*50, Paper: bytes*2*stream + 4*tokens*50, High: 8*stream + 8*tokens + 4*8 + bytes*stream + 16*tokens*50,
		}
		if a.Embedding != embedding || a.Final != final {
			t.Errorf("%d bytes: embedding %v and final %v, want %v and %v", bytes, a.Embedding, a.Final, embedding, final)
		}
	}
}

// TestLayer compares the bytes of a layer with counts by hand, for every feature
// that the paper does not have. The shape has s·b = 32 tokens, h = 8, heads of
// dimension 3, and f = 24.
func TestLayer(t *testing.T) {
	base := transformer.Shape{Layers: 6, Hidden: 8, Heads: 4, KVHeads: 2, HeadDim: 3, FFN: 24, Vocab: 50, Sequence: 16}
	change := func(change func(*transformer.Shape)) transformer.Shape { return with(base, change) }
	gated := change(func(s *transformer.Shape) { s.Gated = true })
	dropout := change(func(s *transformer.Shape) { s.Dropout = true })
	mixed := change(func(s *transformer.Shape) {
		s.Experts = &transformer.Experts{Count: 6, Active: 2, Every: 3, FFN: 10, Shared: 1, CapacityThousandths: 1500}
	})
	const (
		tokens    = 32
		stream    = tokens * 8
		attention = tokens * (2*12 + 2*6) // query and output, key and value
		ffn       = tokens * 24
	)
	for _, c := range []struct {
		name      string
		shape     transformer.Shape
		execution transformer.Execution
		want      int64
	}{
		{"flash", base, transformer.Execution{}, 2*(4*stream+attention+2*ffn) + 4*4*tokens},
		{"plain", base, transformer.Execution{Attention: plain}, 2 * (4*stream + attention + 2*ffn + 4*tokens*16)},
		{"plain float32", base, transformer.Execution{Attention: plain, ElementBytes: 4}, 4 * (4*stream + attention + 2*ffn + 4*tokens*16)},
		{"float32", base, transformer.Execution{ElementBytes: 4}, 4*(4*stream+attention+2*ffn) + 4*4*tokens},
		{"gated", gated, transformer.Execution{}, 2*(4*stream+attention+3*ffn) + 4*4*tokens},
		{"dropout", dropout, transformer.Execution{}, 2*(4*stream+attention+2*ffn) + 4*4*tokens + 2*stream},
		{"dropout plain", dropout, transformer.Execution{Attention: plain}, 2*(4*stream+attention+2*ffn) + 2*stream + 5*4*tokens*16},
		{"dropout plain float32", dropout, transformer.Execution{Attention: plain, ElementBytes: 4}, 4*(4*stream+attention+2*ffn) + 2*stream + 9*4*tokens*16},
		{"context", base, transformer.Execution{Context: 4}, (2*(4*stream+attention+2*ffn) + 4*4*tokens) / 4},
		{"context plain", base, transformer.Execution{Context: 4, Attention: plain}, 2 * (4*stream + attention + 2*ffn + 4*tokens*16) / 4},
		{"tensor", base, transformer.Execution{Tensor: 2}, 2*4*stream + (2*(attention+2*ffn)+4*4*tokens)/2},
		{"more devices than key and value heads", base, transformer.Execution{Tensor: 4}, 2*4*stream + 2*tokens*(2*3+2*3) + (2*2*ffn+4*4*tokens)/4},
		{"tensor and sequence", base, transformer.Execution{Tensor: 2, SequenceParallel: true}, (2*(4*stream+attention+2*ffn) + 4*4*tokens) / 2},
		{"tensor, sequence and context", base, transformer.Execution{Tensor: 2, SequenceParallel: true, Context: 2}, (2*(4*stream+attention+2*ffn) + 4*4*tokens) / 4},
		{"selective", base, transformer.Execution{Recomputation: selective}, 2 * (4*stream + attention + 2*ffn)},
		{"selective plain", dropout, transformer.Execution{Recomputation: selective, Attention: plain}, 2*(4*stream+attention+2*ffn) + 2*stream},
		{"full", base, transformer.Execution{Recomputation: full}, 2 * stream},
		{"full float32", base, transformer.Execution{Recomputation: full, ElementBytes: 4}, 4 * stream},
		{"full, context", base, transformer.Execution{Recomputation: full, Context: 4, Tensor: 2}, 2 * stream / 4},
		{"layers without experts", mixed, transformer.Execution{}, 2*(4*stream+attention+2*ffn) + 4*4*tokens},
	} {
		c.execution.Batch = 2
		if got := activations(t, c.shape, c.execution).Dense.Paper; got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}

// TestExpertLayer compares the bytes of a layer with experts with counts by hand: 32
// tokens are sent to 2 of 6 experts each, which makes 64 rows. Capacities scale them.
func TestExpertLayer(t *testing.T) {
	const (
		tokens = 32
		common = 2*(4*tokens*8+tokens*(2*12+2*6)) + 4*4*tokens + 4*tokens*6 // with router probabilities
	)
	for _, c := range []struct {
		name             string
		capacity, shared int
		gated            bool
		execution        transformer.Execution
		want             int64
	}{
		{"no capacity", 0, 0, false, transformer.Execution{}, common + 2*64*(8+2*10)},
		{"gated", 0, 0, true, transformer.Execution{}, common + 2*64*(8+3*10)},
		{"capacity 1.5", 1500, 0, false, transformer.Execution{}, common + 2*96*(8+2*10)},
		{"capacity 0.5", 500, 0, false, transformer.Execution{}, common + 2*32*(8+2*10)},
		{"shared", 1500, 2, false, transformer.Execution{}, common + 2*96*(8+2*10) + 2*tokens*2*20},
		{"sequence", 1500, 2, false, transformer.Execution{Tensor: 2, SequenceParallel: true}, (common + 2*96*(8+2*10) + 2*tokens*2*20) / 2},
		{"context", 1500, 2, false, transformer.Execution{Context: 2}, (common + 2*96*(8+2*10) + 2*tokens*2*20) / 2},
	} {
		s := transformer.Shape{Layers: 6, Hidden: 8, Heads: 4, KVHeads: 2, HeadDim: 3, FFN: 24, Gated: c.gated, Vocab: 50, Sequence: 16}
		s.Experts = &transformer.Experts{Count: 6, Active: 2, FFN: 10, Shared: c.shared, CapacityThousandths: c.capacity}
		c.execution.Batch = 2
		a := activations(t, s, c.execution)
		if a.Expert.Paper != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, a.Expert.Paper, c.want)
		}
		if a.Dense != (transformer.Bytes{}) {
			t.Errorf("%s: layers without experts have %v bytes, but there are none", c.name, a.Dense)
		}
	}
}

// TestWorking compares what the backward pass computes again with what a layer keeps
// without recomputation. In the worst case, there is also a gradient.
func TestWorking(t *testing.T) {
	p, _ := transformer.Preset("mixtral-8x7b")
	for _, every := range []int{1, 4} {
		p.Shape.Experts.Every = every
		for _, attention := range []transformer.Attention{flash, plain} {
			e := transformer.Execution{Batch: 1, Attention: attention}
			all := activations(t, p.Shape, e)
			e.Recomputation = full
			gradient := transformer.Bytes{High: 2 * int64(p.Shape.Sequence) * int64(p.Shape.Hidden)}
			if got, want := activations(t, p.Shape, e).Working, all.Expert.Plus(gradient); got != want {
				t.Errorf("full: %v bytes are computed again, want %v", got, want)
			}
			e.Recomputation = selective
			kept := activations(t, p.Shape, e)
			if got := kept.Expert.Plus(kept.Working); got.Paper != all.Expert.Paper || got.High != all.Expert.High {
				t.Errorf("selective: %v bytes are kept or computed again, want %v", got, all.Expert)
			}
			if all.Working != (transformer.Bytes{}) {
				t.Errorf("none: %v bytes are computed again", all.Working)
			}
		}
	}
}

// TestGatheredInputs checks upper bounds of sequence parallelism. While a layer is
// computed again, the inputs of both blocks exist for all devices, and the gradient of an
// input too. The input of the head exists for all devices.
func TestGatheredInputs(t *testing.T) {
	s := transformer.Shape{Layers: 1, Hidden: 8, Heads: 4, FFN: 24, Vocab: 50, Sequence: 16}
	const stream = 2 * 2 * 16 * 8
	e := transformer.Execution{Batch: 2, Tensor: 4, SequenceParallel: true}
	kept := activations(t, s, e)
	e.Recomputation = full
	again := activations(t, s, e)
	if got, want := again.Working, kept.Dense.Plus(transformer.Bytes{High: stream + 2*(stream-stream/4)}); got != want {
		t.Errorf("%v bytes are computed again, want %v", got, want)
	}
	paper := int64(2*stream/4 + 4*32*13)
	if want := (transformer.Bytes{Low: paper, Paper: paper, High: 4*(2*8*9+8) + stream + 16*32*13}); kept.Final != want {
		t.Errorf("the head keeps %v bytes, want %v", kept.Final, want)
	}
}
