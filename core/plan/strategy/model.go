package strategy

import (
	"cmp"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// model has the sizes of the model of a document, with all defaults filled in.
type model struct {
	name            string
	shape           *transformer.Shape // nil unless the model is a transformer
	layers          int                // 1 unless the model is a transformer
	sequence        int64              // tokens of an example; 1 unless the model is a transformer
	attention       transformer.Attention
	parts           []part
	parameters      int64
	active          int64         // parameters that take part in computing a token
	forward         int64         // floating-point operations of a forward pass for one example; -1 if they are not known
	activationBytes int64         // bytes of activations of one example; -1 if they are not known, or the model is a transformer
	axes            [numAxes]bool // the axes that can split the model
	specified       bool          // the specs of a tree say what fsdp splits
}

func (p *planner) addModel() (err error) {
	m := &p.doc.Model
	switch {
	case m.Tree != nil:
		p.model, err = p.tree(m)
	case m.Parameters != 0:
		p.model = p.counted(m)
	default:
		p.model, err = p.transformer(m)
	}
	return err
}

// counted returns a model that the document describes by its number of parameters.
func (p *planner) counted(d *Model) *model {
	m := d.withoutLayers("parameters")
	m.parts = []part{p.newPart(transformer.Part{Shape: []int{int(d.Parameters), 1}, Tensor: -1})} // two dimensions, because most weights are in matrices
	m.parts[0].flat = true
	m.sum()
	return m
}

// withoutLayers returns a model that the document does not describe by its layers.
func (d *Model) withoutLayers(name string) *model {
	m := &model{name: name, layers: 1, sequence: 1, forward: -1, activationBytes: -1}
	if d.FLOPsPerExample != nil {
		m.forward = *d.FLOPsPerExample
	}
	if d.ActivationBytesPerExample != nil {
		m.activationBytes = *d.ActivationBytesPerExample
	}
	m.axes[dataAxis], m.axes[fsdpAxis] = true, true
	return m
}

// sum sets the number of parameters to the sum over the parts.
func (m *model) sum() {
	for _, q := range m.parts {
		m.parameters += q.Elements()
	}
	m.active = m.parameters
}

// tree returns the model of a tree. Gradients, moments and a master copy have the
// type of their array, unless the document names one.
func (p *planner) tree(d *Model) (*model, error) {
	m := d.withoutLayers("tree")
	for _, a := range d.Tree {
		e, err := memory.ParseElement(a.Element)
		if err != nil {
			return nil, within(err, "/model/tree/"+jsontext.Escape(a.Name)+"/dtype")
		}
		q := p.newPart(transformer.Part{Name: a.Name, Shape: a.Shape, Tensor: -1})
		q.spec, q.precision = a.Spec, p.precisionOf(e)
		for _, entry := range a.Spec {
			for _, name := range entry {
				m.axes[axisOf(name)] = true
				m.specified = m.specified || name == FSDP
				q.Experts = q.Experts || name == Expert
			}
		}
		m.parts = append(m.parts, q)
	}
	m.sum()
	return m, nil
}

// precisionOf returns the element types of a tree's array.
func (p *planner) precisionOf(e memory.Element) memory.Precision {
	t, r := p.doc.Training.Precision, memory.Precision{Compute: p.precision.Compute, Weights: e}
	if !e.IsFloat() {
		return r
	}
	r.Gradients, r.Moments = e, e
	if t.Gradients != "" {
		r.Gradients = p.precision.Gradients
	}
	if t.Moments != "" {
		r.Moments = p.precision.Moments
	}
	if t.Master != "" {
		r.Master = p.precision.Master
	}
	return r
}

func (p *planner) transformer(d *Model) (*model, error) {
	m := &model{name: cmp.Or(d.Preset, "transformer"), activationBytes: -1, shape: &transformer.Shape{}, attention: p.attention}
	if d.Preset != "" {
		published, err := transformer.Preset(d.Preset)
		if err != nil {
			return nil, within(err, "/model/preset")
		}
		m.shape = &published.Shape
	}
	if d.Transformer != nil {
		d.Transformer.apply(m.shape)
	}
	if err := m.shape.Check(); err != nil {
		return nil, within(err, "/model/transformer")
	}
	*m.shape = m.shape.WithDefaults()
	m.layers, m.sequence = m.shape.Layers, int64(m.shape.Sequence)
	m.parameters, m.active = m.shape.Parameters(), m.shape.Active()
	m.forward = amount.Product(m.shape.FLOPs().Forward(), m.sequence)
	for _, x := range m.shape.Parts() {
		q := p.newPart(x)
		q.layered = true
		m.parts = append(m.parts, q)
	}
	for _, a := range []axis{pipeAxis, dataAxis, fsdpAxis, contextAxis, tensorAxis} {
		m.axes[a] = true
	}
	m.axes[expertAxis] = m.shape.Experts != nil
	return m, nil
}

// apply overwrites the fields of a shape that the document gives.
func (t *Transformer) apply(s *transformer.Shape) {
	for _, f := range []struct {
		to    *int
		value int
	}{{&s.Layers, t.Layers}, {&s.Hidden, t.Hidden}, {&s.Heads, t.Heads}, {&s.KVHeads, t.KVHeads}, {&s.HeadDim, t.HeadDim}, {&s.FFN, t.FFN}, {&s.Vocab, t.Vocab}, {&s.Sequence, t.Sequence}} {
		if f.value != 0 {
			*f.to = f.value
		}
	}
	for _, f := range []struct {
		to, value *bool
	}{{&s.Gated, t.Gated}, {&s.Tied, t.Tied}, {&s.Biases, t.Biases}, {&s.QKVBiases, t.QKVBiases}, {&s.Dropout, t.Dropout}} {
		if f.value != nil {
			*f.to = *f.value
		}
	}
	if t.Causal != nil {
		s.Unmasked = !*t.Causal
	}
	if l := t.Latent; l != nil {
		s.Latent = &transformer.Latent{Query: l.Query, KeyValue: l.KeyValue, Rotary: l.Rotary, Value: l.Value}
	}
	s.Norm = transformer.Norm(cmp.Or(t.Norm, string(s.Norm)))
	s.Positions = transformer.Positions(cmp.Or(t.Positions, string(s.Positions)))
	if e := t.Experts; e != nil {
		s.Experts = &transformer.Experts{Count: e.Count, Active: e.Active, Every: e.Every, After: e.After, FFN: e.FFN, Shared: e.Shared, CapacityThousandths: e.Capacity}
	}
}
