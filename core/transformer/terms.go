package transformer

// counter lists the terms of activations on one device. The comments name the
// sections of Korthikanti et al. (arXiv 2205.05198).
type counter struct {
	Shape
	Execution
	element  int64 // bytes of an activation
	tokens   int64 // of the micro-batch, on this device
	residual int64 // tokens outside of matrices: fewer with sequence parallelism
	heads    int64 // on this device
	kvHeads  int64
	terms    []Term
}

func newCounter(s Shape, e Execution) *counter {
	sequence := ceil(int64(s.Sequence), e.Context)
	c := &counter{Shape: s, Execution: e, element: int64(e.ElementBytes), tokens: mul(int64(e.Batch), sequence)}
	c.residual = c.tokens
	if e.SequenceParallel {
		c.residual = mul(int64(e.Batch), ceil(sequence, e.Tensor))
	}
	c.heads = ceil(int64(s.Heads), e.Tensor)
	c.kvHeads = ceil(int64(s.KVHeads), e.Tensor)
	return c
}

func ceil(n int64, by int) int64 { return (n + int64(by) - 1) / int64(by) }

func (c *counter) term(in Block, name string, b Bytes, reason string) {
	c.terms = append(c.terms, Term{name, in, b, reason})
}

// exact returns a number of bytes without doubt.
func exact(factors ...int64) Bytes {
	n := mul(factors...)
	return Bytes{n, n, n}
}

// stream returns the bytes of one array of the residual stream, s·b·h elements.
func (c *counter) stream() Bytes { return exact(c.element, c.residual, int64(c.Hidden)) }

// mask returns the bytes of a dropout mask of n elements.
func mask(n int64) Bytes { return Bytes{0, n, n} }

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
	case FullRecomputation:
		c.term(InLayer, "layer input", c.stream(), "the backward pass computes the layer again from it")
		c.term(InWorking, "layer computed again", c.whole(), "what a layer without recomputation keeps, for one layer at a time")
	}
}

// whole returns what one layer keeps without recomputation: the larger kind of
// layer, if there are two.
func (c *counter) whole() Bytes {
	e := c.Execution
	e.Recomputation = NoRecomputation
	w := newCounter(c.Shape, e)
	w.layers()
	a := w.sums()
	if a.Expert.Paper > a.Dense.Paper {
		return a.Expert
	}
	return a.Dense
}

// attention lists 11·s·b·h + 5·a·s²·b bytes and the input of the norm, 2·s·b·h
// (section 4.1). The scores are kept, or computed again.
func (c *counter) attention(scores Block) {
	head := int64(c.HeadDim)
	c.norm(InLayer, "attention norm input")
	c.term(InLayer, "attention input", c.stream(), "the products with the query, key and value matrices need it")
	c.term(InLayer, "query", exact(c.element, c.tokens, c.heads, head), "the scores need it")
	c.term(InLayer, "key and value", exact(2, c.element, c.tokens, c.kvHeads, head), "the scores and the weighted values need them")
	if c.Attention == FlashAttention {
		c.term(scores, "log-sum-exp", exact(4, c.tokens, c.heads), "flash attention keeps one float32 per head and token instead of the scores")
	} else {
		c.scores(scores)
	}
	c.term(InLayer, "attention output", exact(c.element, c.tokens, c.heads, head), "the product with the output matrix needs it")
	c.residualMask(InLayer, "attention dropout mask")
}

// scores lists the quadratic terms, 5·a·s²·b: softmax 2, mask 1, dropout output 2.
func (c *counter) scores(in Block) {
	n := mul(c.heads, c.tokens, int64(c.Sequence))
	c.term(in, "softmax", Bytes{mul(c.element, n), mul(c.element, n), mul(c.element+4, n)}, "high: a softmax in float32 is kept besides its copy")
	if c.Dropout {
		c.term(in, "score dropout mask", mask(n), maskReason)
		c.term(in, "score dropout output", Bytes{0, mul(c.element, n), mul(c.element, n)}, "low: the backward pass computes it again from softmax and mask")
	}
}

func (c *counter) norm(in Block, name string) {
	statistics := int64(4)
	if c.Norm == LayerNorm {
		statistics = 8
	}
	b := c.stream()
	b.High = add(b.High, mul(statistics, c.residual))
	c.term(in, name, b, "high: the statistics of each token are kept in float32")
}

func (c *counter) residualMask(in Block, name string) {
	if c.Dropout {
		c.term(in, name, mask(mul(c.residual, int64(c.Hidden))), maskReason)
	}
}

// feedForward lists 19·s·b·h bytes and the input of the norm, 2·s·b·h (section 4.1).
func (c *counter) feedForward() {
	c.norm(InLayer, "feed-forward norm input")
	c.term(InLayer, "feed-forward input", c.stream(), "the products with the first matrices, or with the router, need it")
	c.residualMask(InLayer, "feed-forward dropout mask")
	if c.ExpertLayers(0, c.Layers) < c.Layers {
		c.intermediate(InDense, "feed-forward intermediate", exactRows(c.tokens), c.FFN)
	}
	if c.Experts != nil {
		c.experts()
	}
}

// rows is a number of tokens with bounds.
type rows struct{ low, paper, high int64 }

func exactRows(n int64) rows { return rows{n, n, n} }

func (r rows) bytes(perRow int64) Bytes {
	return Bytes{mul(r.low, perRow), mul(r.paper, perRow), mul(r.high, perRow)}
}

// intermediate lists the arrays of width f between the matrices: input and output of
// the activation function, and of a gated block both inputs and the product.
func (c *counter) intermediate(in Block, name string, r rows, width int) {
	low, paper, high := int64(1), int64(2), int64(2)
	reason := "input and output of the activation function; low: the output is computed again from the input"
	if c.Gated {
		low, paper, high = 2, 3, 4
		reason = "gate, up and product; low: the product is computed again; high: the activated gate is kept too"
	}
	one := mul(c.element, ceil(int64(width), c.Tensor))
	c.term(in, name, Bytes{mul(low, one, r.low), mul(paper, one, r.paper), mul(high, one, r.high)}, reason)
}

// experts lists the terms of a layer with experts. The experts of all devices
// together process every token Active times, so each device keeps Active rows per
// token, whether or not the experts are on several devices.
func (c *counter) experts() {
	e := c.Experts
	const reason = "one row per token and active expert, times the capacity; low: only rows that are routed; without a capacity, high adds a quarter for uneven routing"
	all, own := c.routed(c.tokens), c.routed(c.residual)
	row := mul(c.element, int64(c.Hidden))
	probabilities := mul(4, c.residual, int64(e.Count))
	c.term(InExpert, "router probabilities", Bytes{probabilities, probabilities, mul(2, probabilities)}, "float32; high: the logits are kept too")
	c.term(InExpert, "expert input", own.bytes(row), reason)
	c.intermediate(InExpert, "expert intermediate", all, e.FFN)
	c.term(InExpert, "expert output", Bytes{0, 0, mul(own.high, row)}, "high: the weights of experts multiply their output, and not their intermediate")
	if e.Shared > 0 {
		c.intermediate(InExpert, "shared intermediate", exactRows(c.tokens), e.Shared*e.FFN)
	}
}

// routed returns the rows of tokens that enter experts.
func (c *counter) routed(tokens int64) rows {
	n := mul(tokens, int64(c.Experts.Active))
	share := func(thousandths int) int64 { return ceil(mul(n, int64(thousandths)), 1000) }
	capacity := c.Experts.CapacityThousandths
	if capacity == 0 {
		return rows{n, n, share(1250)}
	}
	return rows{share(min(capacity, 1000)), share(capacity), share(capacity)}
}

// embedding lists the terms of the first pipeline stage (section 4.3).
func (c *counter) embedding() {
	c.term(InEmbedding, "token ids", Bytes{0, 0, mul(4, c.tokens)}, "int32; high: the lookup keeps them")
	c.residualMask(InEmbedding, "embedding dropout mask")
}

// final lists the terms of the last pipeline stage, 4·s·b·h·(1 + V/h) (section 4.3).
func (c *counter) final() {
	c.norm(InFinal, "final norm input")
	c.term(InFinal, "head input", c.stream(), "the product with the head needs it")
	n := mul(c.tokens, ceil(int64(c.Vocab), c.Tensor))
	c.term(InFinal, "logits", Bytes{mul(4, n), mul(4, n), mul(8+c.element, n)}, "float32; high: the product before its conversion and the softmax are kept too")
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
