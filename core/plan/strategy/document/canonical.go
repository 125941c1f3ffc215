package document

import (
	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Canonical returns the text of a document without spaces and with its keys in the
// order of the format. Fields that the document leaves out are left out. [Parse]
// returns the same document for this text.
func Canonical(d *strategy.Document) []byte {
	w := &writer{}
	w.Open('{')
	w.Key("meshfeed").Int(Version)
	w.Key("model")
	w.model(&d.Model)
	w.Key("training")
	w.training(&d.Training)
	w.Key("cluster")
	w.cluster(&d.Cluster)
	if s := &d.Search; s.Axes != nil || s.ZeRO != nil || s.Margin != nil || s.Keep != 0 || s.Pruned {
		w.Key("search")
		w.search(s)
	}
	if d.Input != (strategy.Input{}) {
		w.Key("input").Open('{')
		w.number("rows_per_second", d.Input.RowsPerSecond)
		w.number("processes", int64(d.Input.Processes))
		w.Close('}')
	}
	w.Close('}')
	return w.Text
}

// writer writes the members of a document that are given.
type writer struct{ jsontext.Writer }

// number writes a number, unless it is 0, which stands for the default.
func (w *writer) number(key string, n int64) {
	if n != 0 {
		w.Key(key).Int(n)
	}
}

func (w *writer) optional(key string, n *int64) {
	if n != nil {
		w.Key(key).Int(*n)
	}
}

func (w *writer) flag(key string, v *bool) {
	if v != nil {
		w.Key(key).Bool(*v)
	}
}

func (w *writer) word(key, s string) {
	if s != "" {
		w.Key(key).String(s)
	}
}

func (w *writer) model(m *strategy.Model) {
	w.Open('{')
	w.word("preset", m.Preset)
	if m.Transformer != nil {
		w.Key("transformer")
		w.transformer(m.Transformer)
	}
	w.number("parameters", m.Parameters)
	if m.Tree != nil {
		w.Key("tree").Open('{')
		for i := range m.Tree {
			a := &m.Tree[i]
			w.Key(a.Name).Open('{')
			w.Key("shape").Ints(a.Shape...)
			w.Key("dtype").String(a.Element)
			if a.Spec != nil {
				w.Key("spec")
				layouts.WriteSpec(&w.Writer, a.Spec)
			}
			w.Close('}')
		}
		w.Close('}')
	}
	if m.Inputs != nil {
		w.Key("inputs").Open('{')
		for i := range m.Inputs {
			w.inputArray(&m.Inputs[i])
		}
		w.Close('}')
	}
	w.optional("activation_bytes_per_example", m.ActivationBytesPerExample)
	w.optional("flops_per_example", m.FLOPsPerExample)
	w.Close('}')
}

func (w *writer) inputArray(a *layout.ArraySpec) {
	w.Key(a.Name).Open('{')
	w.Key("shape").Open('[')
	w.String("B")
	for _, n := range a.RowShape {
		w.Int(int64(n))
	}
	w.Close(']')
	w.Key("dtype").String(a.Type.String())
	w.Close('}')
}

func (w *writer) transformer(t *strategy.Transformer) {
	w.Open('{')
	w.number("layers", int64(t.Layers))
	w.number("hidden", int64(t.Hidden))
	w.number("heads", int64(t.Heads))
	w.number("kv_heads", int64(t.KVHeads))
	w.number("head_dim", int64(t.HeadDim))
	if l := t.Latent; l != nil {
		w.Key("latent").Open('{')
		w.number("query", int64(l.Query))
		w.number("key_value", int64(l.KeyValue))
		w.number("rotary", int64(l.Rotary))
		w.number("value", int64(l.Value))
		w.Close('}')
	}
	w.number("ffn", int64(t.FFN))
	w.flag("gated", t.Gated)
	w.number("vocab", int64(t.Vocab))
	w.flag("tied", t.Tied)
	w.number("sequence", int64(t.Sequence))
	w.flag("biases", t.Biases)
	w.flag("qkv_biases", t.QKVBiases)
	w.word("norm", t.Norm)
	w.word("positions", t.Positions)
	w.flag("dropout", t.Dropout)
	w.flag("causal", t.Causal)
	if e := t.Experts; e != nil {
		w.Key("experts").Open('{')
		w.number("count", int64(e.Count))
		w.number("active", int64(e.Active))
		w.number("every", int64(e.Every))
		w.number("after", int64(e.After))
		w.number("ffn", int64(e.FFN))
		w.number("shared", int64(e.Shared))
		if e.Capacity != 0 {
			w.Key("capacity").Fixed(int64(e.Capacity))
		}
		w.Close('}')
	}
	w.Close('}')
}

func (w *writer) training(t *strategy.Training) {
	w.Open('{')
	w.number("batch", t.Batch)
	w.number("tokens", t.Tokens)
	w.number("total_tokens", t.TotalTokens)
	w.number("micro_batch", int64(t.MicroBatch))
	w.word("optimizer", t.Optimizer)
	if t.Precision != (strategy.Precision{}) {
		w.Key("precision")
		w.precision(&t.Precision)
	}
	w.word("recomputation", t.Recomputation)
	w.word("attention", t.Attention)
	w.word("schedule", t.Schedule)
	w.number("chunks", int64(t.Chunks))
	w.flag("sequence_parallel", t.SequenceParallel)
	if t.Overlap != nil {
		w.Key("overlap").Open('{')
		for _, o := range t.Overlap {
			w.Key(o.Axis).Bool(o.Overlap)
		}
		w.Close('}')
	}
	w.interval("efficiency", t.Efficiency)
	w.interval("link_efficiency", t.LinkEfficiency)
	w.Close('}')
}

func (w *writer) interval(key string, i [2]int) {
	if i == [2]int{} {
		return
	}
	w.Key(key).Open('[')
	w.Fixed(int64(i[0]))
	w.Fixed(int64(i[1]))
	w.Close(']')
}

func (w *writer) precision(p *strategy.Precision) {
	w.Open('{')
	w.word("compute", p.Compute)
	w.word("weights", p.Weights)
	if p.Master == strategy.NoMaster {
		w.Key("master").Null()
	} else {
		w.word("master", p.Master)
	}
	w.word("gradients", p.Gradients)
	w.word("moments", p.Moments)
	w.Close('}')
}

func (w *writer) cluster(c *strategy.Cluster) {
	w.Open('{')
	w.number("devices", int64(c.Devices))
	w.word("device", c.Device)
	w.number("per_node", int64(c.PerNode))
	w.number("memory_bytes", c.MemoryBytes)
	w.number("flops_per_second", c.FLOPsPerSecond)
	w.number("hbm_bytes_per_second", c.HBMBytesPerSecond)
	w.number("node_bytes_per_second", c.NodeBytesPerSecond)
	w.number("network_bytes_per_second", c.NetworkBytesPerSecond)
	w.optional("node_latency_ns", c.NodeLatencyNs)
	w.optional("network_latency_ns", c.NetworkLatencyNs)
	w.word("topology", c.Topology)
	w.number("host_bytes", c.HostBytes)
	w.Close('}')
}

func (w *writer) search(s *strategy.Search) {
	w.Open('{')
	if s.Axes != nil {
		w.Key("axes").Open('{')
		for _, a := range s.Axes {
			w.Key(a.Axis).Ints(a.Sizes...)
		}
		w.Close('}')
	}
	if s.ZeRO != nil {
		w.Key("zero").Ints(s.ZeRO...)
	}
	if s.Margin != nil {
		w.Key("margin").Fixed(int64(*s.Margin))
	}
	w.number("keep", int64(s.Keep))
	if s.Pruned {
		w.Key("pruned").Bool(true)
	}
	w.Close('}')
}
