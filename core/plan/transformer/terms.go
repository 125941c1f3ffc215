package transformer

import "github.com/meshfeed/meshfeed/core/plan/internal/amount"

// counter lists the terms of activations on one device. The comments name the
// sections of Korthikanti et al. (arXiv 2205.05198).
type counter struct {
	Shape
	Execution
	element  int64 // bytes of an activation
	tokens   int64 // tokens of the micro-batch, on this device
	residual int64 // tokens on this device outside of matrix products; fewer with sequence parallelism
	heads    int64 // on this device
	kvHeads  int64 // on this device
	terms    []Term
}

func newCounter(s Shape, e Execution) *counter {
	sequence := ceil(int64(s.Sequence), e.Context)
	c := &counter{Shape: s, Execution: e, element: int64(e.ElementBytes), tokens: amount.Product(int64(e.Batch), sequence)}
	c.residual = c.tokens
	if e.SequenceParallel {
		c.residual = amount.Product(int64(e.Batch), ceil(sequence, e.Tensor))
	}
	c.heads = ceil(int64(s.Heads), e.Tensor)
	c.kvHeads = ceil(int64(s.KVHeads), e.Tensor)
	return c
}

// ceil returns n / by, rounded up.
func ceil(n int64, by int) int64 {
	q := n / int64(by)
	if n%int64(by) != 0 {
		q++
	}
	return q
}

func (c *counter) term(in Block, name string, b Bytes, reason string) {
	c.terms = append(c.terms, Term{name, in, b, reason})
}

// exact returns bytes with three equal numbers.
func exact(factors ...int64) Bytes {
	n := amount.Product(factors...)
	return Bytes{n, n, n}
}

// stream returns the bytes of one array of the residual stream, s·b·h elements.
func (c *counter) stream() Bytes { return exact(c.element, c.residual, int64(c.Hidden)) }

const maskReason = "a byte per element; low: the backward pass draws the mask again"

// layers lists the terms of a layer. With full recomputation, a layer keeps its
// input alone, 2·s·b·h (section 5).
func (c *counter) layers() {
	switch c.Recomputation {
	case NoRecomputation:
		c.attention(InLayer)
		c.feedForward()
	case SelectiveRecomputation:
		c.attention(InWorking)
		c.feedForward()
	case DotsRecomputation:
		c.attention(InWorking)
		c.feedForward()
		c.onlyProducts()
		c.exchanged()
	case FullRecomputation:
		c.term(InLayer, "layer input", c.stream(), "the backward pass computes the layer again from it")
		c.term(InWorking, "layer computed again", c.whole(), "what a layer without recomputation keeps, for one layer at a time")
		c.exchanged()
	}
}

// onlyProducts keeps the least of the terms so far, which are the results of matrix
// products with weights. While a layer is computed again, the others exist too.
func (c *counter) onlyProducts() {
	var kept []Term
	for _, t := range c.terms {
		if t.In != InWorking && t.Bytes.Low > 0 {
			kept = append(kept, Term{t.Name, t.In, exact(t.Bytes.Low), "jax.checkpoint keeps it with the policy dots_with_no_batch_dims_saveable"})
		}
	}
	c.terms = kept
	a, whole := c.sums(), c.whole()
	layer := max(a.Dense.Low, a.Expert.Low)
	c.term(InWorking, "layer computed again", Bytes{0, max(0, whole.Paper-layer), max(0, whole.High-layer)}, "what a layer without recomputation keeps in addition, for one layer at a time")
}

// exchanged lists arrays that exist for the tokens of all tensor devices while a layer is
// computed again.
func (c *counter) exchanged() {
	whole := c.gathered()
	c.term(InWorking, "gradient of an input", Bytes{High: whole}, "high: the tensor devices have still to add it up")
	c.term(InWorking, "gathered inputs", Bytes{High: amount.Product(2, whole-c.stream().High)}, "high: the inputs of attention and of the feed-forward block, of the other tensor devices")
}

// gathered returns the bytes of an array of the residual stream for the tokens of all
// tensor devices.
func (c *counter) gathered() int64 { return amount.Product(c.element, c.tokens, int64(c.Hidden)) }

// whole returns the bytes that one layer stores without recomputation. If some layers
// have experts and others do not, it returns the larger number.
func (c *counter) whole() Bytes {
	e := c.Execution
	e.Recomputation = NoRecomputation
	w := newCounter(c.Shape, e)
	w.layers()
	a := w.sums()
	return Bytes{max(a.Dense.Low, a.Expert.Low), max(a.Dense.Paper, a.Expert.Paper), max(a.Dense.High, a.Expert.High)}
}

// attention lists 11·s·b·h + 5·a·s²·b bytes and the input of the norm, 2·s·b·h
// (section 4.1). scores is the block of the scores: InLayer if they are kept, InWorking if
// the backward pass computes them again.
func (c *counter) attention(scores Block) {
	token := amount.Product(c.element, c.tokens)
	c.normalized("attention")
	if a := c.Latent; a != nil {
		latent := amount.Product(token, int64(a.Query+a.KeyValue+a.Rotary))
		c.term(InLayer, "latent vectors", Bytes{latent, amount.Product(2, latent), amount.Product(4, latent)}, "inputs and outputs of their norms; low: the outputs are computed again; high: in float32 too")
	}
	c.term(InLayer, "query", exact(token, c.heads, int64(c.query())), "the scores need it")
	pair := amount.Product(token, int64(c.query()+c.value()))
	c.term(InLayer, "key and value", Bytes{amount.Product(pair, c.kvHeads), amount.Product(pair, c.kvHeads), amount.Product(pair, c.heads)}, "the scores and the weighted values need them; high: repeated for every query head")
	output := exact(token, c.heads, int64(c.value()))
	reason := "the product with the output matrix needs it"
	if scores == InWorking {
		output.Low = 0
		reason += "; low: it is computed again with the scores"
	}
	c.term(InLayer, "attention output", output, reason)
	if c.Attention == FlashAttention {
		c.term(scores, "log-sum-exp", exact(4, c.tokens, c.heads), "flash attention keeps one float32 per head and token instead of the scores")
	} else {
		c.scores(scores)
	}
	c.mask("attention dropout mask")
}

// scores lists the quadratic terms, 5·a·s²·b: softmax 2, mask 1, dropout output 2.
func (c *counter) scores(in Block) {
	rows := amount.Product(c.heads, c.tokens)
	n := amount.Product(rows, int64(c.Sequence))
	softmax := exact(c.element, n)
	softmax.High = amount.Sum(softmax.High, amount.Product(4, n), amount.Product(8, rows))
	c.term(in, "softmax", softmax, "high: the exponentials in float32, their sums and maxima are kept too")
	if c.Dropout {
		c.term(in, "score dropout mask", Bytes{0, n, n}, maskReason)
		output := amount.Product(c.element, n)
		c.term(in, "score dropout output", Bytes{0, output, output}, "low: it is computed again from softmax and mask")
	}
}

// normalized lists the input of a norm, 2·s·b·h, and its output, which is the input
// of the attention or of the feed-forward block, 2·s·b·h.
func (c *counter) normalized(block string) {
	c.norm(InLayer, block+" norm input")
	output := c.stream()
	output.Low = 0
	c.term(InLayer, block+" input", output, "the products with the first matrices need it; low: it is computed again from the norm's input")
}

// norm lists the input of a norm. A norm that is written as single operations keeps
// float32 copies: of the input and the normalized values, and LayerNorm also of the
// centered values. Each copy has one statistic per token.
func (c *counter) norm(in Block, name string) {
	copies := int64(2)
	if c.Norm == LayerNorm {
		copies = 3
	}
	hidden := int64(c.Hidden)
	b := c.stream()
	b.High = amount.Product(4, amount.Sum(amount.Product(copies, c.residual, hidden+1), hidden))
	c.term(in, name, b, "high: single operations keep the normalized values, statistics and the scale, in float32")
}

// mask lists the mask of a dropout on the residual stream, s·b·h.
func (c *counter) mask(name string) {
	if c.Dropout {
		n := amount.Product(c.residual, int64(c.Hidden))
		c.term(InLayer, name, Bytes{0, n, n}, maskReason)
	}
}

// feedForward lists 19·s·b·h bytes and the input of the norm, 2·s·b·h (section 4.1).
func (c *counter) feedForward() {
	c.normalized("feed-forward")
	c.mask("feed-forward dropout mask")
	if c.ExpertLayers(0, c.Layers) < c.Layers {
		c.intermediate(InDense, "feed-forward intermediate", exactRows(c.tokens), c.FFN)
	}
	if c.Experts != nil {
		c.experts()
	}
}

// rows is a number of rows, one for each token and expert, with bounds like Bytes.
type rows struct{ low, paper, high int64 }

func exactRows(n int64) rows { return rows{n, n, n} }

// intermediate lists the arrays of width f between the matrices: input and output of
// the activation function, and of a gated block both inputs and the product. JAX
// without jax.checkpoint keeps six, for GELU by tanh as for SwiGLU.
func (c *counter) intermediate(in Block, name string, r rows, width int) {
	low, paper := int64(1), int64(2)
	reason := "input and output of the activation function; low: the output is computed again"
	if c.Gated {
		low, paper = 2, 3
		reason = "gate, up and product; low: the product is computed again"
	}
	reason += "; high: single operations keep six arrays"
	one := amount.Product(c.element, ceil(int64(width), c.Tensor))
	c.term(in, name, Bytes{amount.Product(low, one, r.low), amount.Product(paper, one, r.paper), amount.Product(6, one, r.high)}, reason)
}

// experts lists the terms of a layer with experts. All experts together process every
// token Active times. So each device keeps Active rows per token, also if the experts
// are on several devices.
func (c *counter) experts() {
	e := c.Experts
	const reason = "one row per token and active expert, times the capacity; low: only rows that are routed; high: without a capacity, a quarter more for uneven routing"
	all, own := c.routed(c.tokens), c.routed(c.residual)
	row := amount.Product(c.element, int64(c.Hidden))
	probabilities := amount.Product(4, c.residual, int64(e.Count))
	c.term(InExpert, "router probabilities", Bytes{probabilities, probabilities, amount.Product(2, probabilities)}, "float32; high: the logits are kept too")
	input := Bytes{amount.Product(own.low, row), amount.Product(own.paper, row), amount.Product(all.high, row)}
	c.term(InExpert, "expert input", input, reason+", and the rows of all tensor devices")
	c.intermediate(InExpert, "expert intermediate", all, e.FFN)
	c.term(InExpert, "expert output", Bytes{0, 0, amount.Product(all.high, row)}, "high: the weights of experts multiply their output, and not their intermediate")
	if e.Shared > 0 {
		c.intermediate(InExpert, "shared intermediate", exactRows(c.tokens), e.Shared*e.FFN)
	}
}

// routed returns the rows of tokens that enter experts.
func (c *counter) routed(tokens int64) rows {
	n := amount.Product(tokens, int64(c.Experts.Active))
	share := func(thousandths int) int64 { return ceil(amount.Product(n, int64(thousandths)), 1000) }
	capacity := c.Experts.CapacityThousandths
	if capacity == 0 {
		return rows{n, n, share(1250)}
	}
	return rows{share(min(capacity, 1000)), share(capacity), share(capacity)}
}

// embedding lists the terms of the first pipeline stage (section 4.3).
func (c *counter) embedding() {
	c.term(InEmbedding, "token ids", Bytes{0, 0, amount.Product(4, c.tokens)}, "int32; high: the lookup keeps them")
	if c.Dropout {
		n := amount.Product(c.residual, int64(c.Hidden))
		c.term(InEmbedding, "embedding dropout mask", Bytes{0, n, n}, maskReason)
	}
}

// final lists the terms of the last pipeline stage, 4·s·b·h·(1 + V/h) (section 4.3).
func (c *counter) final() {
	c.norm(InFinal, "final norm input")
	input := c.stream()
	input.High = c.gathered()
	c.term(InFinal, "head input", input, "the product with the head needs it; high: the input of all tensor devices")
	n := amount.Product(c.tokens, ceil(int64(c.Vocab), c.Tensor))
	c.term(InFinal, "logits", Bytes{amount.Product(4, n), amount.Product(4, n), amount.Product(16, n)}, "float32; high: the product before its conversion, the softmax, and the gradient in both types exist at the same time")
}

// sums adds the terms of each block.
func (c *counter) sums() *Activations {
	var of [InWorking + 1]Bytes
	for _, t := range c.terms {
		of[t.In] = of[t.In].Plus(t.Bytes)
	}
	a := &Activations{Embedding: of[InEmbedding], Final: of[InFinal], Working: of[InWorking], Terms: c.terms}
	experts := c.ExpertLayers(0, c.Layers)
	if experts < c.Layers {
		a.Dense = of[InLayer].Plus(of[InDense])
	}
	if experts > 0 {
		a.Expert = of[InLayer].Plus(of[InExpert])
	}
	return a
}
