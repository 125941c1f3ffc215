package hardware

import "slices"

// permutations has all orders of two and of three dimensions.
var permutations = map[int][][]int{
	2: {{0, 1}, {1, 0}},
	3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}},
}

// torusAxes returns the paths of axes with the best order of dimensions.
func (c *Cluster) torusAxes(sizes []int) []Path {
	var best []Path
	for _, order := range c.orders() {
		paths := c.ordered(sizes, order)
		if paths != nil && (best == nil || better(paths, best)) {
			best = paths
		}
	}
	if best == nil {
		return c.single(sizes)
	}
	return best
}

// orders lists the different orders of the sizes of the dimensions.
func (c *Cluster) orders() [][]int {
	var list [][]int
	for _, numbers := range permutations[len(c.Torus)] {
		order := make([]int, len(numbers))
		for i, n := range numbers {
			order[i] = c.Torus[n]
		}
		if !slices.ContainsFunc(list, func(o []int) bool { return slices.Equal(o, order) }) {
			list = append(list, order)
		}
	}
	return list
}

// better reports whether a is better than b: more axes have whole dimensions, or equally
// many, and the innermost axis with different links has faster ones.
func better(a, b []Path) bool {
	if x, y := whole(a), whole(b); x != y {
		return x > y
	}
	for i := len(a) - 1; i >= 0; i-- {
		if a[i].Node != b[i].Node {
			return a[i].Node.BytesPerSecond > b[i].Node.BytesPerSecond
		}
	}
	return false
}

// whole counts the axes that have only whole dimensions.
func whole(paths []Path) int {
	n := 0
	for _, p := range paths {
		if !slices.ContainsFunc(p.Rings, func(r Ring) bool { return !r.complete }) {
			n++
		}
	}
	return n
}

// ordered divides the dimensions of a slice among the axes, beginning with the
// innermost axis and the last dimension of the order. It returns nil if an axis
// and the rest of a dimension do not divide each other.
func (c *Cluster) ordered(sizes, order []int) []Path {
	paths := make([]Path, len(sizes))
	next, dimension := len(order), 0 // the dimensions before next are not begun; dimension is the size of the current one
	used, rest := 1, 1               // devices along the current dimension: used by inner axes, and left
	for i := len(sizes) - 1; i >= 0; i-- {
		p := Path{Size: sizes[i], Inner: 1, Nodes: 1, Network: c.Network}
		for n := sizes[i]; n > 1; {
			for rest == 1 && next > 0 {
				next--
				dimension = order[next]
				rest, used = dimension, 1
			}
			take := gcd(n, rest)
			switch {
			case rest == 1: // all dimensions are used, so the axis continues in other slices
				p.Nodes, n = n, 1
				continue
			case take != n && take != rest:
				return nil
			}
			p.Rings = append(p.Rings, c.ring(take, used, dimension))
			p.Inner *= take
			used, rest, n = used*take, rest/take, n/take
		}
		paths[i] = c.linked(p)
	}
	return paths
}

// ring returns the part of a dimension for an axis of a size. used is the product of the
// sizes that inner axes have in the dimension.
func (c *Cluster) ring(size, used, dimension int) Ring {
	r := Ring{Size: size, Stride: used, complete: size == dimension}
	r.Wrap = used*size == dimension && c.wraps(dimension)
	r.BytesPerSecond = c.Node.BytesPerSecond / int64(2*len(c.Torus)) / int64(used)
	if r.Wrap {
		r.BytesPerSecond *= 2
	}
	return r
}

// wraps reports whether a dimension of a slice is a ring. In three dimensions,
// optical switches close the rings, and they connect whole cubes: then all
// dimensions are rings, or none is.
func (c *Cluster) wraps(dimension int) bool {
	if len(c.Torus) == 3 {
		return c.Wrap > 0 && !slices.ContainsFunc(c.Torus, func(size int) bool { return size%c.Wrap > 0 })
	}
	return c.Wrap > 0 && dimension%c.Wrap == 0
}

// linked adds up the links of the rings. They all work at the same time, because an array
// is cut into one part for each ring. Every part passes the rings in another order.
func (c *Cluster) linked(p Path) Path {
	p.Node.LatencyNs = c.Node.LatencyNs
	for _, r := range p.Rings {
		p.Node.BytesPerSecond += r.BytesPerSecond
	}
	return p
}

// single returns paths for axes that do not fit the dimensions: every group is
// a chain of neighbors.
func (c *Cluster) single(sizes []int) []Path {
	paths, stride := make([]Path, len(sizes)), 1
	for i := len(sizes) - 1; i >= 0; i-- {
		p := c.switched(stride, sizes[i])
		p.Node = Link{}
		if p.Inner > 1 {
			p.Rings = []Ring{c.ring(p.Inner, 1, 0)} // ring in dimension 0, so that it never wraps
		}
		paths[i] = c.linked(p)
		stride *= sizes[i]
	}
	return paths
}
