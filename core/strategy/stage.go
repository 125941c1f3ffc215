package strategy

// stage is a pipeline stage with the number of its blocks.
type stage struct {
	number, first int // of the stage, and of its first layer
	dense         int // layers without experts, or 1 for a model whose layers are not known
	experts       int // layers with experts
	embedding     bool
	head          bool
	tied          bool // the head needs a copy of the token embedding
	alike         int  // in the result of distinct: the number of stages with the same blocks
	index         int  // in the list of the evaluator
}

func (g *stage) layers() int { return g.dense + g.experts }

// stages lists the stages of a pipeline. If the stages do not divide the layers, some
// stages have one layer more: those just before the last one. The last stage already
// has the head, and the first stages store the most activations.
func (m *model) stages(pipe, chunks int) []stage {
	list := make([]stage, pipe)
	if m.shape == nil {
		list[0] = stage{dense: 1, alike: 1}
		return list
	}
	base, extra := m.layers/(pipe*chunks), m.layers%(pipe*chunks)
	layer := 0
	for k := range pipe * chunks {
		g := &list[k%pipe]
		n := base
		if number := k % pipe; extra > 0 && number < pipe-1 && number >= pipe-1-extra {
			n++
		}
		if k < pipe {
			*g = stage{number: k, first: layer, embedding: k == 0, head: k == pipe-1, alike: 1}
			g.tied = g.head && m.shape.Tied && pipe > 1
		}
		experts := m.shape.ExpertLayers(layer, layer+n)
		g.experts += experts
		g.dense += n - experts
		layer += n
	}
	return list
}

// distinct lists one stage for each combination of blocks: the first such stage, which
// stores the most micro-batches.
func distinct(all []stage) []stage {
	var list []stage
next:
	for _, g := range all {
		for i := range list {
			if h := &list[i]; h.dense == g.dense && h.experts == g.experts && h.embedding == g.embedding && h.head == g.head {
				h.alike++
				continue next
			}
		}
		list = append(list, g)
	}
	return list
}

// sum adds up the blocks of the stage.
func (g *stage) sum(w *weights) block {
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
