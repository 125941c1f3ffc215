package transformer_test

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/core/status"
)

// checkError compares the text, the code and the path of an error.
func checkError(t *testing.T, err error, path, text string) {
	t.Helper()
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		t.Fatalf("%v, want %s", err, text)
	}
	if e.Error() != text {
		t.Errorf("the error is\n%s\nwant\n%s", e, text)
	}
	if e.Code != status.InvalidArgument || e.Attr("path") != path {
		t.Errorf("%v has code %v and path %v, want %s", e, e.Code, e.Attr("path"), path)
	}
	if e.Hint == "" {
		t.Errorf("%v has no remedy", e)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change     func(*transformer.Shape)
		path, text string
	}{
		{func(s *transformer.Shape) { s.Layers = 0 }, "/layers", `the key "layers" is missing; give a number from 1 to 2^31`},
		{func(s *transformer.Shape) { s.Hidden = -4 }, "/hidden", "hidden is -4, but must be from 1 to 2^31; a model needs at least 1"},
		{func(s *transformer.Shape) { s.Heads = 0 }, "/heads", `the key "heads" is missing; give a number from 1 to 2^31`},
		{func(s *transformer.Shape) { s.FFN = 0 }, "/ffn", `the key "ffn" is missing; give a number from 1 to 2^31`},
		{func(s *transformer.Shape) { s.Vocab = 0 }, "/vocab", `the key "vocab" is missing; give a number from 1 to 2^31`},
		{func(s *transformer.Shape) { s.Sequence = 1<<31 + 1 }, "/sequence", "sequence is 2147483649, but must be from 1 to 2^31; make it smaller"},
		{func(s *transformer.Shape) { s.KVHeads = -1 }, "/kv_heads", "kv_heads is -1, but must be from 1 to 2^31; leave it out for the default"},
		{func(s *transformer.Shape) { s.HeadDim = -1 }, "/head_dim", "head_dim is -1, but must be from 1 to 2^31; leave it out for the default"},
		{func(s *transformer.Shape) { s.Heads = 24 }, "/heads",
			"hidden 4096 does not divide by 24 heads: 4096 % 24 = 16; give head_dim if a head is not hidden / heads wide"},
		{func(s *transformer.Shape) { s.KVHeads = 12 }, "/kv_heads",
			"32 heads do not divide by 12 key and value heads: 32 % 12 = 8; use a divisor of heads, 1 for multi-query attention, or leave it out"},
		{func(s *transformer.Shape) { s.KVHeads = 64 }, "/kv_heads",
			"32 heads do not divide by 64 key and value heads: 32 % 64 = 32; use a divisor of heads, 1 for multi-query attention, or leave it out"},
		{func(s *transformer.Shape) { s.Norm = "batch" }, "/norm", `"batch" is not a normalization; write "rms" or "layer"`},
		{func(s *transformer.Shape) { s.Positions = "alibi" }, "/positions",
			`"alibi" is not a kind of positions; write "learned" for a table with a row per position, and "rotary" for positions without parameters`},
		{func(s *transformer.Shape) { s.Experts.Count = 0 }, "/experts/count", `the key "count" is missing; give a number from 1 to 2^31`},
		{func(s *transformer.Shape) { s.Experts.Active = 0 }, "/experts/active", `the key "active" is missing; give a number from 1 to 2^31`},
		{func(s *transformer.Shape) { s.Experts.Active = 9 }, "/experts/active", "9 experts process a token, but there are 8; active counts the experts for one token"},
		{func(s *transformer.Shape) { s.Experts.Every = 33 }, "/experts/every",
			"each 33-th layer has experts, but there are 32 layers; 1 means every layer; leave out experts for a dense model"},
		{func(s *transformer.Shape) { s.Experts.Every = -1 }, "/experts/every", "every is -1, but must be from 1 to 2^31; leave it out for the default"},
		{func(s *transformer.Shape) { s.Experts.FFN = -1 }, "/experts/ffn", "ffn is -1, but must be from 1 to 2^31; leave it out for the default"},
		{func(s *transformer.Shape) { s.Experts.Shared = -1 }, "/experts/shared", "shared is -1, but must be from 1 to 2^31; leave it out for the default"},
		{func(s *transformer.Shape) { s.Experts.CapacityThousandths = -5 }, "/experts/capacity",
			"capacity is -0.005, but must be from 0.001 to 2^31 / 1000; leave it out if no token is dropped"},
		{func(s *transformer.Shape) { s.Layers = 1 << 31 }, "", "the model has more than 2^53 parameters; make the sizes smaller"},
		{func(s *transformer.Shape) { // the query matrices have 2^64 elements, which is 0 in 64 bits
			*s = transformer.Shape{Layers: 1 << 31, Hidden: 1 << 16, Heads: 1, HeadDim: 1 << 17, FFN: 1, Vocab: 1, Sequence: 1}
		}, "", "the model has more than 2^53 parameters; make the sizes smaller"},
		{func(s *transformer.Shape) { s.Sequence, s.Heads, s.HeadDim, s.Layers = 1<<31, 1<<14, 1, 1<<9 }, "/sequence",
			"a token takes more than 2^53 floating-point operations forward; make the sequence shorter"},
	} {
		p, err := transformer.Preset("mixtral-8x7b")
		if err != nil {
			t.Fatal(err)
		}
		c.change(&p.Shape)
		path := "/model/transformer" + c.path
		checkError(t, p.Shape.Check(), path, "transformer: "+path+": "+c.text)
	}
}

func TestUnknownPreset(t *testing.T) {
	_, err := transformer.Preset("llama3-9b")
	checkError(t, err, "/model/preset", `transformer: /model/preset: there is no model "llama3-9b"; did you mean "llama3-8b"?`)
	_, err = transformer.Preset("mine")
	checkError(t, err, "/model/preset", `transformer: /model/preset: there is no model "mine"; `+
		`use one of "gpt2", "gpt2-xl", "gpt3-175b", "llama2-7b", "llama2-70b", "llama3-8b", "llama3-70b", "llama3-405b", "mixtral-8x7b", "deepseek-v3", `+
		`"megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t", or give the sizes as transformer`)
}

func TestExecution(t *testing.T) {
	p, err := transformer.Preset("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		execution  transformer.Execution
		path, text string
	}{
		{transformer.Execution{}, "/training/micro_batch", "a micro-batch has 0 examples, but must have from 1 to 2^31; use at least 1"},
		{transformer.Execution{Batch: 1, Tensor: -1}, "/search/axes/tensor", "axis tensor has size -1, but must have from 1 to 2^31; use at least 1"},
		{transformer.Execution{Batch: 1, Context: 1<<31 + 1}, "/search/axes/context",
			"axis context has size 2147483649, but must have from 1 to 2^31; use at least 1"},
		{transformer.Execution{Batch: 1, Attention: "linear"}, "/training/attention", `"linear" is not a kind of attention; write "flash" or "plain"`},
		{transformer.Execution{Batch: 1, Recomputation: "half"}, "/training/recomputation",
			`"half" is not a kind of recomputation; write "none", "dots", "selective" or "full"`},
		{transformer.Execution{Batch: 1, ElementBytes: 1}, "/training/precision/compute",
			`an activation has 1 bytes, but must have 2 or 4; compute in "bfloat16", "float16" or "float32"`},
		{transformer.Execution{Batch: 1 << 31}, "/training/micro_batch",
			"a layer keeps more than 2^53 bytes for 2147483648 examples of 8192 tokens; use fewer examples, or a shorter sequence"},
	} {
		_, err := p.Shape.Activations(c.execution)
		checkError(t, err, c.path, "transformer: "+c.path+": "+c.text)
	}
}
