package advice

import (
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// writeShape writes a shape in the form of a document. Sizes that are the default are
// left out.
func writeShape(w *jsontext.Writer, s *transformer.Shape) {
	w.Key("transformer").Open('{')
	sizes(w, []size{
		{"layers", s.Layers}, {"hidden", s.Hidden}, {"heads", s.Heads}, {"kv_heads", s.KVHeads}, {"head_dim", s.HeadDim},
		{"ffn", s.FFN}, {"vocab", s.Vocab}, {"sequence", s.Sequence},
	})
	if l := s.Latent; l != nil {
		w.Key("latent").Open('{')
		sizes(w, []size{{"query", l.Query}, {"key_value", l.KeyValue}, {"rotary", l.Rotary}, {"value", l.Value}})
		w.Close('}')
	}
	for _, f := range []struct {
		key string
		on  bool
	}{{"gated", s.Gated}, {"tied", s.Tied}, {"biases", s.Biases}, {"qkv_biases", s.QKVBiases}, {"dropout", s.Dropout}} {
		if f.on {
			w.Key(f.key).Bool(true)
		}
	}
	if s.Unmasked {
		w.Key("causal").Bool(false)
	}
	if s.Norm == transformer.LayerNorm {
		w.Key("norm").String(string(s.Norm))
	}
	if s.Positions == transformer.Learned {
		w.Key("positions").String(string(s.Positions))
	}
	if e := s.Experts; e != nil {
		w.Key("experts").Open('{')
		sizes(w, []size{{"count", e.Count}, {"active", e.Active}, {"every", e.Every}, {"after", e.After}, {"ffn", e.FFN}, {"shared", e.Shared}})
		if e.CapacityThousandths != 0 {
			w.Key("capacity").Fixed(int64(e.CapacityThousandths))
		}
		w.Close('}')
	}
	w.Close('}')
}

type size struct {
	key string
	n   int
}

// sizes writes the sizes that are not 0.
func sizes(w *jsontext.Writer, list []size) {
	for _, s := range list {
		if s.n != 0 {
			w.Key(s.key).Int(int64(s.n))
		}
	}
}
