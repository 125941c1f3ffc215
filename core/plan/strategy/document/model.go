package document

import (
	"errors"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/wording"
)

var modelKeys = []string{"preset", "transformer", "parameters", "tree", "inputs", "activation_bytes_per_example", "flops_per_example"}

func (p *parser) model(key string) (err error) {
	m := &p.doc.Model
	switch key {
	case "preset":
		m.Preset, err = p.Word("the name of a model")
	case "transformer":
		m.Transformer = new(strategy.Transformer)
		err = p.Members("a transformer", 0, transformerKeys, p.transformer)
	case "parameters":
		m.Parameters, err = p.Integer("a number of parameters", 1, layout.MaxInteger)
	case "tree":
		m.Tree = []strategy.Array{}
		err = p.Object("an object of arrays", p.array)
	case "inputs":
		m.Inputs = []layout.ArraySpec{}
		err = p.Object("an object of arrays", p.inputArray)
	case "activation_bytes_per_example":
		m.ActivationBytesPerExample, err = p.optional("a number of bytes", layout.MaxInteger)
	case "flops_per_example":
		m.FLOPsPerExample, err = p.optional("a number of operations", layout.MaxInteger)
	}
	return err
}

// misplaced adds a hint to the error about a key of a transformer that a document has in
// the model instead of inside "transformer".
func (p *parser) misplaced(err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	for _, key := range transformerKeys {
		if e.Attr("path") == "/model/"+key {
			return e.WithHint(`write it inside "transformer", which may stand beside "preset"`)
		}
	}
	return err
}

var transformerKeys = []string{
	"layers", "hidden", "heads", "kv_heads", "head_dim", "latent", "ffn", "gated", "vocab", "tied", "sequence",
	"biases", "qkv_biases", "norm", "positions", "dropout", "causal", "experts",
}

func (p *parser) transformer(key string) (err error) {
	t := p.doc.Model.Transformer
	sizes := map[string]*int{
		"layers": &t.Layers, "hidden": &t.Hidden, "heads": &t.Heads, "kv_heads": &t.KVHeads, "head_dim": &t.HeadDim,
		"ffn": &t.FFN, "vocab": &t.Vocab, "sequence": &t.Sequence,
	}
	flags := map[string]**bool{"gated": &t.Gated, "tied": &t.Tied, "biases": &t.Biases, "qkv_biases": &t.QKVBiases, "dropout": &t.Dropout, "causal": &t.Causal}
	switch {
	case sizes[key] != nil:
		*sizes[key], err = p.Int("a size", 1, layout.MaxInteger)
	case flags[key] != nil:
		*flags[key], err = p.flag()
	case key == "norm":
		t.Norm, err = p.Word("a kind of norm")
	case key == "positions":
		t.Positions, err = p.Word("a kind of positions")
	case key == "latent":
		l := new(strategy.Latent)
		t.Latent = l
		err = p.Members("latent attention", 2, []string{"key_value", "rotary", "query", "value"}, func(key string) (err error) {
			to := map[string]*int{"query": &l.Query, "key_value": &l.KeyValue, "rotary": &l.Rotary, "value": &l.Value}[key]
			*to, err = p.Int("a width", 1, layout.MaxInteger)
			return err
		})
	default:
		t.Experts = new(strategy.Experts)
		err = p.Members("experts", 2, []string{"count", "active", "every", "after", "ffn", "shared", "capacity"}, p.experts)
	}
	return err
}

func (p *parser) experts(key string) (err error) {
	e := p.doc.Model.Transformer.Experts
	if key == "capacity" {
		var n int64
		n, err = p.Fixed("a capacity", 1, 1<<30)
		e.Capacity = int(n)
		return err
	}
	least := int64(1)
	if key == "shared" || key == "after" {
		least = 0
	}
	to := map[string]*int{"count": &e.Count, "active": &e.Active, "every": &e.Every, "after": &e.After, "ffn": &e.FFN, "shared": &e.Shared}[key]
	*to, err = p.Int("a number", least, layout.MaxInteger)
	return err
}

func (p *parser) array(name string) error {
	if len(p.doc.Model.Tree) == MaxArrays {
		return form.Strategy.Invalid("/model/tree", "there are more than %d arrays", MaxArrays)
	}
	a := strategy.Array{Name: name, Shape: []int{}}
	err := p.Members("an array", 2, []string{"shape", "dtype", "spec"}, func(key string) (err error) {
		switch key {
		case "shape":
			err = p.List("a shape", layout.MaxRank, func(int) error {
				n, err := p.Int("a size", 0, layout.MaxInteger)
				a.Shape = append(a.Shape, n)
				return err
			})
		case "dtype":
			a.Element, err = p.Word("an element type")
		case "spec":
			a.Spec, err = layouts.ReadSpec(p.Reader)
		}
		return err
	})
	p.doc.Model.Tree = append(p.doc.Model.Tree, a)
	return err
}

// inputArray reads an array of the batch. It has no spec, because the planner chooses
// the spec.
func (p *parser) inputArray(name string) error {
	if len(p.doc.Model.Inputs) == layout.MaxArrays {
		return form.Strategy.Invalid("/model/inputs", "there are more than %d arrays", layout.MaxArrays)
	}
	if name == "" {
		return p.Fail("an array has no name").WithHint("a name has at least one character")
	}
	a := layout.ArraySpec{Name: name, RowShape: []int{}}
	err := p.Members("an array", 2, []string{"shape", "dtype"}, func(key string) error {
		if key == "dtype" {
			return p.dtype(&a)
		}
		return p.inputShape(&a)
	})
	p.doc.Model.Inputs = append(p.doc.Model.Inputs, a)
	return err
}

func (p *parser) inputShape(a *layout.ArraySpec) error {
	a.Static = true
	err := p.List("a shape", layout.MaxRank, func(i int) error {
		if i == 0 {
			a.Static = false
			return p.batchDimension()
		}
		n, err := p.Int("a size", 0, layout.MaxInteger)
		a.RowShape = append(a.RowShape, n)
		return err
	})
	if err == nil && a.Static {
		return p.Fail("the shape is empty").WithHint(`begin the shape with "B", the batch dimension`)
	}
	return err
}

// batchDimension reads "B", with which the shape of an array of the batch begins.
func (p *parser) batchDimension() error {
	const want = `the batch dimension "B"`
	name, err := p.Text(want)
	if err == nil && name != "B" {
		return p.Fail("expected %s, but found %s", want, wording.Quote(name))
	}
	return err
}

func (p *parser) dtype(a *layout.ArraySpec) error {
	name, err := p.Word("an element type")
	if err != nil {
		return err
	}
	if a.Type, err = dtype.Parse(name); err != nil {
		return p.Fail("%s is not an element type", wording.Quote(name)).WithHint("use a name such as \"float32\", as NumPy spells it")
	}
	return nil
}
