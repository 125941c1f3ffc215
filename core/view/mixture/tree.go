package mixture

import (
	"cmp"
	"slices"
)

// tree divides draws among the sources with a weight above 0.
type tree struct {
	nodes []node
	root  int32
	leaf  []int32 // by source: its node, or none
}

// node is a leaf, or has two children.
type node struct {
	weight      uint64
	share       uint64 // weight of the left child
	left, right int32  // none for a leaf
	parent      int32  // none for the root
	source      int32  // of a leaf
}

const none = -1

// newTree joins the two lightest nodes until one is left. Among nodes of one weight the earlier one
// counts as lighter: first come the leaves, in the order of the sources. The heavier node of a pair is
// the left child.
func newTree(weights []uint64) tree {
	t := tree{leaf: make([]int32, len(weights))}
	var leaves []int32
	for source, w := range weights {
		t.leaf[source] = none
		if w > 0 {
			t.leaf[source] = int32(len(t.nodes))
			leaves = append(leaves, int32(len(t.nodes)))
			t.nodes = append(t.nodes, node{weight: w, left: none, right: none, parent: none, source: int32(source)})
		}
	}
	slices.SortStableFunc(leaves, func(a, b int32) int { return cmp.Compare(t.nodes[a].weight, t.nodes[b].weight) })
	joined := int32(len(t.nodes)) // the lightest node with two children that has no parent
	lightest := func() int32 {
		made := int32(len(t.nodes))
		if len(leaves) > 0 && (joined == made || t.nodes[leaves[0]].weight <= t.nodes[joined].weight) {
			i := leaves[0]
			leaves = leaves[1:]
			return i
		}
		joined++
		return joined - 1
	}
	for len(leaves)+len(t.nodes)-int(joined) > 1 {
		b, a := lightest(), lightest()
		above := int32(len(t.nodes))
		x, y := &t.nodes[a], &t.nodes[b]
		x.parent, y.parent = above, above
		t.nodes = append(t.nodes, node{weight: x.weight + y.weight, share: x.weight, left: a, right: b, parent: none})
	}
	t.root = int32(len(t.nodes)) - 1
	return t
}

// lefts returns how many of a node's first n draws the left child gets: floor(n·share/weight + 1/2).
// With n = q·weight + r, no product exceeds 64 bits, because weights are at most 2^32.
func (x *node) lefts(n uint64) uint64 {
	q, r := n/x.weight, n%x.weight
	return q*x.share + (r*x.share+x.weight/2)/x.weight
}

// at returns the source of a draw, and how many draws before it the source got.
func (t *tree) at(draw uint64) (source int, number uint64) {
	i, n := t.root, draw
	for t.nodes[i].left != none {
		x := &t.nodes[i]
		lefts := x.lefts(n)
		if x.lefts(n+1) > lefts {
			i, n = x.left, lefts
		} else {
			i, n = x.right, n-lefts
		}
	}
	return int(t.nodes[i].source), n
}

// count returns how many of the first n draws a source gets.
func (t *tree) count(source int, n uint64) uint64 {
	if t.leaf[source] == none {
		return 0
	}
	return t.reach(t.leaf[source], n)
}

// reach returns how many of the tree's first n draws a node gets.
func (t *tree) reach(i int32, n uint64) uint64 {
	above := t.nodes[i].parent
	if above == none {
		return n
	}
	n = t.reach(above, n)
	lefts := t.nodes[above].lefts(n)
	if t.nodes[above].left == i {
		return lefts
	}
	return n - lefts
}

// position returns the draw that a source gets after number others.
func (t *tree) position(source int, number uint64) (draw uint64, ok bool) {
	i := t.leaf[source]
	if i == none {
		return 0, false
	}
	for above := t.nodes[i].parent; above != none; i, above = above, t.nodes[above].parent {
		x := &t.nodes[above]
		if x.left == i {
			number = first(number, x.share, x.weight, x.weight/2)
		} else {
			// A right child gets n − L(n) = floor((n·b + w − 1 − floor(w/2)) / w) of n draws, if b is its weight.
			number = first(number, x.weight-x.share, x.weight, x.weight-1-x.weight/2)
		}
	}
	return number, true
}

// first returns the smallest m with floor(((m+1)·a + c) / w) = j + 1. With j = q·a + r, no product
// exceeds 64 bits.
func first(j, a, w, c uint64) uint64 {
	q, r := j/a, j%a
	return q*w + ((r+1)*w-c+a-1)/a - 1
}
