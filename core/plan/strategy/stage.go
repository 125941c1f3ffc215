package strategy

import "sort"

// stage is a pipeline stage with the number of its blocks.
type stage struct {
	number    int // from 0
	first     int // number of the first layer
	dense     int // layers without experts, or 1 for a model with unknown layers
	experts   int // layers with experts
	embedding bool
	head      bool
	tied      bool // the head needs a copy of the token embedding
	equal     int  // in the result of distinct: the number of stages with the same blocks
	index     int  // in the list of the evaluator
}

func (g *stage) layers() int { return g.dense + g.experts }

// stages lists the stages of a pipeline.
func (m *model) stages(pipe, chunks int) []stage {
	list := make([]stage, pipe)
	if m.shape == nil {
		list[0] = stage{dense: 1, equal: 1}
		return list
	}
	for k, c := range m.chunkList(pipe, chunks) {
		g := &list[k%pipe]
		if k < pipe {
			*g = stage{number: k, first: c.first, embedding: k == 0, head: k == pipe-1, equal: 1}
			g.tied = g.head && m.shape.Tied && pipe > 1
		}
		g.experts += c.experts
		g.dense += c.dense
	}
	return list
}

// chunkList lists the chunks of all stages in the order of the computation. Each is a stage
// with the layers of the chunk, and the last one has the head.
func (m *model) chunkList(pipe, chunks int) []stage {
	list := make([]stage, pipe*chunks)
	layer := 0
	for k, n := range m.divide(pipe, chunks) {
		experts := m.shape.ExpertLayers(layer, layer+n)
		list[k] = stage{first: layer, dense: n - experts, experts: experts, head: k == len(list)-1}
		layer += n
	}
	return list
}

// divide returns the number of layers in each chunk of each stage, in the order of the
// computation.
func (m *model) divide(pipe, chunks int) []int {
	if chunks > 1 {
		return m.equal(pipe * chunks)
	}
	list := make([]int, pipe)
	last := m.last(pipe)
	list[pipe-1] = last
	for k := range pipe - 1 {
		list[k] = (m.layers - last) / (pipe - 1)
		if k >= pipe-1-(m.layers-last)%(pipe-1) { // the first stages store the most activations
			list[k]++
		}
	}
	return list
}

// last returns the number of layers of the last stage that gives the slowest stage the
// fewest operations. The last stage computes the head too. The layers of the other stages
// differ by at most one.
func (m *model) last(pipe int) int {
	if pipe == 1 {
		return m.layers
	}
	f := m.shape.Computed(1, m.attention)
	layer, head := float64(f.Layers())/float64(m.layers), float64(f.Head)
	slowest := func(n int) float64 { // time of the slowest of the other stages
		return float64(ceil(int64(m.layers-n), int64(pipe-1))) * layer
	}
	most := m.layers - pipe + 1
	// n is the most layers that keep the last stage from being the slowest. With n+1
	// layers, the slowest stage may still be faster.
	n := sort.Search(most, func(n int) bool { return float64(float64(n+1)*layer)+head > slowest(n+1) })
	if n == 0 || n < most && float64(float64(n+1)*layer)+head < slowest(n) {
		n++
	}
	return n
}

// equal returns the number of layers in each chunk of an interleaved schedule. If the
// layers do not divide, the last chunk, which has the head, has one layer less. Then the
// first chunk, which has the embedding, may have one layer less too [Llama Team,
// arXiv 2407.21783, section 3.3.2].
func (m *model) equal(chunks int) []int {
	missing := missing(m.layers, chunks)
	list := make([]int, chunks)
	for k := range list {
		list[k] = (m.layers + missing) / chunks
	}
	list[0] -= missing / 2
	list[chunks-1] -= (missing + 1) / 2
	return list
}

// missing returns how many layers the model would need in addition for equal chunks.
func missing(layers, chunks int) int { return (chunks - layers%chunks) % chunks }

// distinct lists one stage for each combination of blocks: the first one, because a
// stage stores at most as many micro-batches as the stage before it.
func distinct(all []stage) []stage {
	var list []stage
next:
	for _, g := range all {
		for i := range list {
			if h := &list[i]; h.dense == g.dense && h.experts == g.experts && h.embedding == g.embedding && h.head == g.head {
				h.equal++
				continue next
			}
		}
		list = append(list, g)
	}
	return list
}

// sum adds up the blocks of the stage.
func (g *stage) sum(w *blocks) block {
	var b block
	for k, n := range g.copies() {
		if n > 0 {
			b.plus(&w[k], int64(n))
		}
	}
	return b
}

// copies returns how many of each block the stage has.
func (g *stage) copies() [numBlocks]int {
	n := [numBlocks]int{denseBlock: g.dense, expertBlock: g.experts}
	if g.embedding {
		n[tokensBlock], n[positionsBlock] = 1, 1
	}
	if g.head {
		n[headBlock] = 1
	}
	if g.tied {
		n[tokensBlock] = 1
	}
	return n
}
