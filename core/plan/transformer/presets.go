package transformer

import (
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Published is a model with published sizes.
type Published struct {
	Name   string // name in documents, such as "llama3-8b"
	Title  string // title in texts, such as "Llama 3 8B"
	Shape  Shape
	Source string // where the sizes are published
}

// gpt returns the shape of a model of the GPT family: two matrices in the
// feed-forward block, four times as wide as the residual stream.
func gpt(layers, hidden, heads, vocab, sequence int) Shape {
	return Shape{
		Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden, Vocab: vocab, Tied: true, Sequence: sequence,
		Biases: true, Norm: LayerNorm, Positions: Learned, Dropout: true,
	}
}

func llama(layers, hidden, heads, kvHeads, ffn, vocab, sequence int) Shape {
	return Shape{
		Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads, FFN: ffn, Gated: true, Vocab: vocab, Sequence: sequence,
		Norm: RMSNorm, Positions: Rotary,
	}
}

func mixture(s Shape, e Experts) Shape {
	s.Experts = &e
	return s
}

// deepseekV3 returns the shape of DeepSeek-V3 without its module for a second token.
func deepseekV3() Shape {
	s := llama(61, 7168, 128, 128, 18432, 129280, 4096)
	s.HeadDim, s.Latent = 128, &Latent{Query: 1536, KeyValue: 512, Rotary: 64, Value: 128}
	return mixture(s, Experts{Count: 256, Active: 8, Shared: 1, FFN: 2048, After: 3})
}

const (
	korthikanti = "Korthikanti et al. 2022, arXiv 2205.05198, table 3"
	llama3      = "Llama Team 2024, arXiv 2407.21783, table 3, and config.json of the model card"
)

var presets = []Published{
	{"gpt2", "GPT-2 124M", gpt(12, 768, 12, 50257, 1024), "Radford et al. 2019, and config.json of the model card openai-community/gpt2"},
	{"gpt2-xl", "GPT-2 1.5B", gpt(48, 1600, 25, 50257, 1024), "Radford et al. 2019, and config.json of the model card openai-community/gpt2-xl"},
	{"gpt3-175b", "GPT-3 175B", gpt(96, 12288, 96, 50257, 2048), "Brown et al. 2020, arXiv 2005.14165, table 2.1"},
	{"llama2-7b", "Llama 2 7B", llama(32, 4096, 32, 32, 11008, 32000, 4096), "Touvron et al. 2023, arXiv 2307.09288, and config.json of the model card meta-llama/Llama-2-7b-hf"},
	{"llama2-70b", "Llama 2 70B", llama(80, 8192, 64, 8, 28672, 32000, 4096), "Touvron et al. 2023, arXiv 2307.09288, and config.json of the model card meta-llama/Llama-2-70b-hf"},
	{"llama3-8b", "Llama 3 8B", llama(32, 4096, 32, 8, 14336, 128256, 8192), llama3},
	{"llama3-70b", "Llama 3 70B", llama(80, 8192, 64, 8, 28672, 128256, 8192), llama3},
	{"llama3-405b", "Llama 3 405B", llama(126, 16384, 128, 8, 53248, 128256, 8192), llama3},
	{"mixtral-8x7b", "Mixtral 8x7B", mixture(llama(32, 4096, 32, 8, 14336, 32000, 32768), Experts{Count: 8, Active: 2}), "Jiang et al. 2024, arXiv 2401.04088, table 1"},
	{"deepseek-v3", "DeepSeek-V3 671B", deepseekV3(), "DeepSeek-AI 2024, arXiv 2412.19437, section 4.2, without multi-token prediction"},
	{"megatron-22b", "Megatron 22B", gpt(48, 6144, 64, 51200, 2048), korthikanti},
	{"megatron-175b", "Megatron 175B", gpt(96, 12288, 96, 51200, 2048), korthikanti},
	{"megatron-530b", "Megatron-Turing NLG 530B", gpt(105, 20480, 128, 51200, 2048), korthikanti},
	{"megatron-1t", "Megatron 1T", gpt(128, 25600, 160, 51200, 2048), korthikanti},
}

// Presets lists the models that Preset knows.
func Presets() []Published {
	list := make([]Published, len(presets))
	for i, p := range presets {
		list[i] = p.clone()
	}
	return list
}

// Preset returns a published model by its name, such as "llama3-8b". The caller
// may change its shape.
func Preset(name string) (Published, error) {
	names := make([]string, len(presets))
	for i, p := range presets {
		if p.Name == name {
			return p.clone(), nil
		}
		names[i] = p.Name
	}
	hint := wording.Suggest(name, names)
	if wording.Nearest(name, names) == "" {
		hint += ", or give the sizes as transformer"
	}
	return Published{}, status.Errorf(status.InvalidArgument, "transformer", "/model/preset: there is no model %s", wording.Quote(name)).
		WithHint("%s", hint).With("path", "/model/preset")
}

func (p Published) clone() Published {
	if p.Shape.Experts != nil {
		e := *p.Shape.Experts
		p.Shape.Experts = &e
	}
	if p.Shape.Latent != nil {
		l := *p.Shape.Latent
		p.Shape.Latent = &l
	}
	return p
}
