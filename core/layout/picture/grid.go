package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// grid is the drawing of an array, before it becomes text or SVG: a table of
// cells over two dimensions of the array. Every device is in one cell. If more
// dimensions are partitioned, a cell has all parts along them.
type grid struct {
	down, across side
	inner        []side // further dimensions that are partitioned
	folded       bool   // only down is drawn, and its many tiles are wrapped into several lines
	rows, cols   []int  // the tiles that are drawn; gap stands for tiles left out
	cells        [][]cell
	replicas     int // devices that hold each part
}

// side is a dimension of the array along one side of a grid.
type side struct {
	dim    int // -1 if the array has no such dimension
	size   int
	tiles  int
	stride int      // distance in the array's tile numbers between neighbors along this dimension
	axes   []string // that partition it
}

// span writes the range of a tile, as in "0:64".
func (s side) span(tile int) string {
	step := s.size / s.tiles
	return wording.Span(tile*step, (tile+1)*step)
}

// title names the dimension and its axes.
func (s side) title() string {
	names := make([]string, len(s.axes))
	for i, a := range s.axes {
		names[i] = wording.Plain(a)
	}
	if len(names) == 0 {
		return fmt.Sprintf("dimension %d", s.dim)
	}
	return fmt.Sprintf("dimension %d over %s", s.dim, strings.Join(names, ", "))
}

// sideTexts names the dimension that runs in each direction.
func (g *grid) sideTexts() []string {
	var texts []string
	switch {
	case g.folded:
		texts = append(texts, "↵ "+g.down.title()+", line by line")
	case g.down.dim >= 0 && g.down.tiles > 1:
		texts = append(texts, "↓ "+g.down.title())
	case g.across.dim < 0:
		texts = append(texts, "not partitioned")
	}
	if g.across.dim >= 0 {
		texts = append(texts, "→ "+g.across.title())
	}
	for _, s := range g.inner {
		texts = append(texts, "| "+s.title())
	}
	return texts
}

// rowLabel returns the label of row i.
func (g *grid) rowLabel(i int) string {
	r := g.rows[i]
	switch {
	case r == drawing.Gap || g.down.dim < 0:
		return ""
	case !g.folded:
		return g.down.span(r)
	}
	step, first := g.down.size/g.down.tiles, r*len(g.cols)
	return wording.Span(step*first, step*min(first+len(g.cols), g.down.tiles))
}

// colLabel returns the label of column j.
func (g *grid) colLabel(j int) string {
	c := g.cols[j]
	switch {
	case c == drawing.Gap:
		return ""
	case g.folded:
		return "+" + strconv.Itoa(g.down.size/g.down.tiles*c)
	case g.across.dim < 0:
		return ""
	}
	return g.across.span(c)
}

// cell is where one tile of down and one tile of across meet. Its parts are the tiles
// of the array there, one for each combination of tiles of the inner dimensions.
type cell struct {
	parts     [][]int32 // for each of the first parts, the mesh positions that hold it
	left      int       // number of parts that are not listed
	processes []int     // processes that hold any part, sorted
}

// gridOf lays out the cells of the array that h describes, with at most limit tiles
// across. dims are the two dimensions to draw; nil draws the first two that are
// partitioned. swap exchanges the sides.
func (l *view) gridOf(h *holders, dims []int, limit int, swap bool) *grid {
	a, t := &l.arrays[h.array], l.Tiling(h.array)
	g := &grid{down: side{dim: -1, tiles: 1}, across: side{dim: -1, tiles: 1}, replicas: l.mesh.Size() / t.Count()}
	sides := sidesOf(a, t, dims)
	if len(sides) > 0 {
		g.down = sides[0]
	}
	if len(sides) > 1 {
		g.across, g.inner = sides[1], sides[2:]
	}
	if swap {
		g.down, g.across = g.across, g.down
	}
	g.folded = g.across.dim < 0 && g.down.tiles > maxSide
	rows, most := g.down.tiles, maxSide
	if l.mesh.Size() <= fewDevices {
		most = fewDevices
	}
	cols := g.across.tiles
	if g.folded {
		cols = foldWidth(g.down.tiles, min(limit, maxSide))
		rows = (rows + cols - 1) / cols
	}
	g.rows, g.cols = drawing.Shown(rows, most), drawing.Shown(cols, limit)
	l.fillCells(g, h)
	return g
}

// sidesOf lists the dimensions that are partitioned, first the dimensions in dims.
func sidesOf(a *layout.Array, t sharding.Tiling, dims []int) []side {
	var sides []side
	tiles, strides := t.Tiles(), make([]int, len(a.Shape))
	for d, stride := len(tiles)-1, 1; d >= 0; d-- {
		strides[d] = stride
		stride *= tiles[d]
	}
	add := func(d int) {
		s := side{dim: d, size: a.Shape[d], tiles: tiles[d], stride: strides[d]}
		if spec := a.Sharding.Spec(); d < len(spec) {
			s.axes = spec[d]
		}
		sides = append(sides, s)
	}
	for _, d := range dims {
		if d >= 0 && d < len(a.Shape) && len(sides) < 2 && !slices.ContainsFunc(sides, func(s side) bool { return s.dim == d }) {
			add(d)
		}
	}
	for d, k := range tiles {
		if k > 1 && !slices.ContainsFunc(sides, func(s side) bool { return s.dim == d }) {
			add(d)
		}
	}
	if len(sides) == 0 && len(a.Shape) > 0 {
		add(0)
	}
	return sides
}

// foldWidth returns the tiles per line of a folded dimension: the largest number
// up to most that divides the tiles, if it is more than half of most; else most.
func foldWidth(tiles, most int) int {
	for n := most; n > most/2; n-- {
		if tiles%n == 0 {
			return n
		}
	}
	return most
}

// fillCells fills the cells of the tiles that are drawn.
func (l *view) fillCells(g *grid, h *holders) {
	for _, r := range g.rows {
		line := make([]cell, len(g.cols))
		for i, c := range g.cols {
			if down, across := r, c; r != drawing.Gap && c != drawing.Gap {
				if g.folded {
					down, across = r*len(g.cols)+c, 0
				}
				if down < g.down.tiles {
					line[i] = l.cellAt(g, down, across, h)
				}
			}
		}
		g.cells = append(g.cells, line)
	}
}

// holders lists the mesh positions that hold each tile of an array.
type holders struct {
	array     int
	start     []int32 // positions[start[t]:start[t+1]] hold tile t
	positions []int32
}

// holders groups the mesh positions by the tile of an array that they hold.
func (l *view) holders(array int) *holders {
	t := l.Tiling(array)
	ids := t.All()
	h := &holders{array: array, start: make([]int32, t.Count()+1), positions: make([]int32, len(ids))}
	for _, id := range ids {
		h.start[id+1]++
	}
	for i := range t.Count() {
		h.start[i+1] += h.start[i]
	}
	next := slices.Clone(h.start)
	for position, id := range ids {
		h.positions[next[id]] = int32(position)
		next[id]++
	}
	return h
}

// cellAt builds the cell at a tile of down and a tile of across.
func (l *view) cellAt(g *grid, down, across int, h *holders) cell {
	base := down*g.down.stride + across*g.across.stride
	parts := 1
	for _, s := range g.inner {
		parts *= s.tiles
	}
	var c cell
	for part := range parts {
		tile, rest := base, part
		for _, s := range slices.Backward(g.inner) {
			tile += rest % s.tiles * s.stride
			rest /= s.tiles
		}
		holding := h.positions[h.start[tile]:h.start[tile+1]]
		for _, position := range holding {
			p := l.mesh.Device(int(position)).Process
			if n := len(c.processes); n == 0 || c.processes[n-1] != p {
				c.processes = append(c.processes, p)
			}
		}
		if part < maxParts || l.mesh.Size() <= fewDevices {
			c.parts = append(c.parts, holding)
		} else {
			c.left++
		}
	}
	slices.Sort(c.processes)
	c.processes = slices.Compact(c.processes)
	return c
}
