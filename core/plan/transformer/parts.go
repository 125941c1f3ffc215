package transformer

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
)

// Stage is the step of the computation that first uses an array.
type Stage uint8

// The stages. A pipeline puts the embedding on its first stage, and the final norm
// and the head on its last stage.
const (
	EmbeddingStage Stage = iota
	LayerStage
	FinalStage
	HeadStage
)

var stageNames = [...]string{"embedding", "layer", "final", "head"}

// String returns the name of the stage, such as "layer".
func (s Stage) String() string { return stageNames[s] }

// Layers says which layers have a part.
type Layers uint8

// The layers.
const (
	EveryLayer   Layers = iota
	DenseLayers         // layers without experts
	ExpertLayers        // layers with experts
)

// Part is an array of the model, or the arrays of the same kind in several layers.
type Part struct {
	Name    string
	Shape   []int
	Copies  int // arrays of this kind in the model: the layers that have it, or 1
	Stage   Stage
	Tensor  int    // the dimension that tensor parallelism splits, or -1 for none
	Unit    int    // number of units in this dimension, which are never split: heads, columns or tokens
	Experts bool   // the first dimension counts experts, and expert parallelism splits it
	Layers  Layers // layers that have this part of a layer

	shared bool // several devices may hold the same unit, as key and value heads
}

// Elements returns the number of elements of one array.
func (p Part) Elements() int64 { return amount.Product(p.Shape...) }

// Shard returns the shape of one device's part if tensor × expert devices share the
// array. It returns false if the sizes do not divide. Both numbers are at least 1. If there
// are fewer key and value heads than tensor devices, several devices hold the same head, as
// in GQAQKVColumnParallelLinear of NeuronX Distributed. A vocabulary is padded to a
// multiple of tensor, as in Megatron-LM.
func (p Part) Shard(tensor, expert int) (shape []int, ok bool) {
	shape = slices.Clone(p.Shape)
	if p.Experts {
		if shape[0]%expert != 0 {
			return nil, false
		}
		shape[0] /= expert
	}
	if p.Tensor < 0 {
		return shape, true
	}
	units, ok := p.units(tensor)
	if !ok {
		return nil, false
	}
	shape[p.Tensor] = p.Shape[p.Tensor] / p.Unit * units
	return shape, true
}

// units returns the number of units on one of tensor devices.
func (p Part) units(tensor int) (int, bool) {
	switch {
	case p.Stage != LayerStage: // tokens
		return (p.Unit + tensor - 1) / tensor, true
	case p.Unit%tensor == 0:
		return p.Unit / tensor, true
	}
	return 1, p.shared && tensor%p.Unit == 0
}

// Holders returns the number of devices that hold the same elements if tensor devices
// share the array. If tensor parallelism does not split it, these are all devices. If there
// are fewer key and value heads than devices, several devices hold a head.
func (p Part) Holders(tensor int) int {
	switch {
	case p.Tensor < 0:
		return tensor
	case p.shared:
		return max(1, tensor/p.Unit)
	}
	return 1
}

// Parts lists the arrays in the order of the computation.
func (s Shape) Parts() []Part {
	s = s.WithDefaults()
	l := &lister{shape: s, bias: s.Biases, stage: EmbeddingStage}
	l.split("embedding/tokens", 0, s.Vocab, s.Vocab, s.Hidden)
	if s.Positions == Learned {
		l.whole("embedding/positions", s.Sequence, s.Hidden)
	}
	l.stage = LayerStage
	l.attention()
	l.blocks()
	l.stage = FinalStage
	l.norm("final_norm")
	if !s.Tied {
		l.stage = HeadStage
		l.split("head", 1, s.Vocab, s.Hidden, s.Vocab)
	}
	return l.parts
}

// lister collects the parts of a shape. The fields stage, layers, bias and shared apply
// to the parts that are added next.
type lister struct {
	shape  Shape
	parts  []Part
	stage  Stage
	layers Layers

	bias   bool // every matrix of a layer has one
	shared bool // several devices may hold the same unit
}

func (l *lister) add(p Part) {
	p.Stage, p.Copies = l.stage, 1
	if l.stage == LayerStage {
		p.Layers, p.Copies = l.layers, l.copies()
	}
	if p.Copies > 0 {
		l.parts = append(l.parts, p)
	}
}

// copies returns the number of layers that have the current parts.
func (l *lister) copies() int {
	switch experts := l.shape.ExpertLayers(0, l.shape.Layers); l.layers {
	case ExpertLayers:
		return experts
	case DenseLayers:
		return l.shape.Layers - experts
	}
	return l.shape.Layers
}

// whole lists an array that tensor parallelism does not split.
func (l *lister) whole(name string, shape ...int) {
	l.add(Part{Name: name, Shape: shape, Tensor: -1, Unit: 1})
}

// split lists an array that tensor parallelism splits along a dimension of so many units.
func (l *lister) split(name string, dimension, units int, shape ...int) {
	l.add(Part{Name: name, Shape: shape, Tensor: dimension, Unit: units, shared: l.shared})
}

func (l *lister) norm(name string) {
	l.whole(name+"/scale", l.shape.Hidden)
	if l.shape.Norm == LayerNorm {
		l.whole(name+"/bias", l.shape.Hidden)
	}
}

// columns lists a matrix with a split output, and its bias.
func (l *lister) columns(name string, units, in, out int, bias bool) {
	l.split(name+"/kernel", 1, units, in, out)
	if bias {
		l.split(name+"/bias", 0, units, out)
	}
}

// rows lists a matrix with a split input, and its bias. The bias is not split, because it
// is added after the sum over devices.
func (l *lister) rows(name string, units, in, out int) {
	l.split(name+"/kernel", 0, units, in, out)
	if l.bias {
		l.whole(name+"/bias", out)
	}
}

func (l *lister) attention() {
	s := l.shape
	bias := l.bias || s.QKVBiases
	l.norm("layers/attention_norm")
	if s.Latent != nil {
		l.latent(bias)
		return
	}
	l.columns("layers/attention/query", s.Heads, s.Hidden, s.Heads*s.HeadDim, bias)
	l.shared = true
	l.columns("layers/attention/key", s.KVHeads, s.Hidden, s.KVHeads*s.HeadDim, bias)
	l.columns("layers/attention/value", s.KVHeads, s.Hidden, s.KVHeads*s.HeadDim, bias)
	l.shared = false
	l.rows("layers/attention/output", s.Heads, s.Heads*s.HeadDim, s.Hidden)
}

// latent lists the arrays of multi-head latent attention. The latent vectors have norms,
// and tensor parallelism splits only what makes heads of them.
func (l *lister) latent(bias bool) {
	s, a := l.shape, l.shape.Latent
	from := s.Hidden
	if a.Query > 0 {
		l.whole("layers/attention/query_latent/kernel", s.Hidden, a.Query)
		l.whole("layers/attention/query_norm/scale", a.Query)
		from = a.Query
	}
	l.columns("layers/attention/query", s.Heads, from, s.Heads*s.query(), bias)
	l.whole("layers/attention/key_value_latent/kernel", s.Hidden, a.KeyValue+a.Rotary)
	l.whole("layers/attention/key_value_norm/scale", a.KeyValue)
	l.columns("layers/attention/key_value", s.Heads, a.KeyValue, s.Heads*(s.HeadDim+a.Value), bias)
	l.rows("layers/attention/output", s.Heads, s.Heads*a.Value, s.Hidden)
}

// blocks lists the feed-forward blocks of layers without and with experts.
func (l *lister) blocks() {
	l.norm("layers/ffn_norm")
	e := l.shape.Experts
	if e == nil {
		l.dense("layers/ffn", l.shape.FFN)
		return
	}
	l.layers = DenseLayers
	l.dense("layers/ffn", l.shape.FFN)
	l.layers = ExpertLayers
	l.whole("layers/router/kernel", l.shape.Hidden, e.Count)
	for _, name := range l.inputs() {
		l.expert(name, 2, e.Count, l.shape.Hidden, e.FFN)
	}
	l.expert("down", 1, e.Count, e.FFN, l.shape.Hidden)
	if e.Shared > 0 {
		l.dense("layers/shared", e.Shared*e.FFN)
	}
}

// inputs names the matrices that enter a feed-forward block.
func (l *lister) inputs() []string {
	if l.shape.Gated {
		return []string{"gate", "up"}
	}
	return []string{"up"}
}

func (l *lister) dense(name string, width int) {
	for _, input := range l.inputs() {
		l.columns(name+"/"+input, width, l.shape.Hidden, width, l.bias)
	}
	l.rows(name+"/down", width, width, l.shape.Hidden)
}

// expert lists one matrix of all experts of a layer, with its bias. tensor is the dimension
// of the matrix that tensor parallelism splits: 2, the output, or 1, the input.
func (l *lister) expert(name string, tensor, count, in, out int) {
	name = "layers/experts/" + name
	width := l.shape.Experts.FFN
	l.add(Part{Name: name + "/kernel", Shape: []int{count, in, out}, Tensor: tensor, Unit: width, Experts: true})
	if !l.bias {
		return
	}
	if tensor == 2 {
		l.add(Part{Name: name + "/bias", Shape: []int{count, out}, Tensor: 1, Unit: width, Experts: true})
		return
	}
	l.add(Part{Name: name + "/bias", Shape: []int{count, out}, Tensor: -1, Unit: 1, Experts: true})
}

// Parameters returns the number of parameters: the sum over Parts.
func (s Shape) Parameters() int64 {
	n := int64(0)
	for _, p := range s.Parts() {
		n = amount.Sum(n, amount.Product(int64(p.Copies), p.Elements()))
	}
	return n
}

// Active returns the number of parameters that take part in the computation of one
// token: of the experts of a layer, only the active and the shared ones. All rows of the
// embedding count.
func (s Shape) Active() int64 {
	n := int64(0)
	for _, p := range s.Parts() {
		size := p.Elements()
		if p.Experts {
			size = amount.Product(size/int64(p.Shape[0]), int64(s.Experts.Active))
		}
		n = amount.Sum(n, amount.Product(int64(p.Copies), size))
	}
	return n
}
