package layout

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// gap stands for the tiles that a drawing leaves out.
const gap = -1

// grid is what the drawing of an array shows, whatever it is drawn with: a
// table of cells over two dimensions of the array. Every device stands in one
// cell. Where more dimensions are cut, a cell holds all parts along them.
type grid struct {
	down, across side
	inner        []side // further dimensions that are cut
	folded       bool   // only down is cut, and is read line by line
	rows, cols   []int  // the tiles that are drawn, with a gap where some are left out
	cells        [][]cell
	replicas     int // devices that hold each part
}

// side is a dimension of the array along one side of a grid.
type side struct {
	dim    int // -1 where the array has no such dimension
	size   int
	tiles  int
	stride int      // weight of a tile in the number of the whole tile
	axes   []string // that cut it
}

// span gives the range of a tile, as in "0:64".
func (s side) span(tile int) string {
	step := s.size / s.tiles
	return fmt.Sprintf("%d:%d", tile*step, (tile+1)*step)
}

// cell is one tile of both sides.
type cell struct {
	parts     [][]int32 // mesh positions that hold each part, the first few parts only
	left      int       // parts that are not listed
	processes []int     // that hold any of it, sorted
}

const (
	roomy    = 64 // devices of a mesh up to which every cell is drawn
	maxParts = 4  // parts of a cell that are listed for a larger mesh
	maxSide  = 8  // tiles along a side that are drawn for a larger mesh
)

// gridOf lays out the cells of the array that h belongs to, with at most limit tiles across. dims
// are the two dimensions to draw, or nil; swap exchanges the sides.
func (l *Layout) gridOf(h *holders, dims []int, limit int, swap bool) *grid {
	a, t := &l.arrays[h.array], l.tilings[h.array]
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
	if l.mesh.Size() <= roomy {
		most = roomy
	}
	cols := g.across.tiles
	if g.folded {
		cols = foldWidth(g.down.tiles, min(limit, maxSide))
		rows = (rows + cols - 1) / cols
	}
	g.rows, g.cols = shown(rows, most), shown(cols, limit)
	l.fillCells(g, h)
	return g
}

// sidesOf lists the dimensions that are cut, those to be drawn first.
func sidesOf(a *Array, t sharding.Tiling, dims []int) []side {
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

// foldWidth gives the tiles per line of a folded dimension: the most that
// divide them, but at least half of what fits.
func foldWidth(tiles, most int) int {
	for n := most; n > most/2; n-- {
		if tiles%n == 0 {
			return n
		}
	}
	return most
}

// shown lists the tiles to draw: all, or the first ones and the last.
func shown(tiles, most int) []int {
	var list []int
	for i := range min(tiles, most) {
		list = append(list, i)
	}
	if tiles > most {
		list[len(list)-1] = tiles - 1
		if most > 2 {
			list[len(list)-2] = gap
		}
	}
	return list
}

func (l *Layout) fillCells(g *grid, h *holders) {
	for _, r := range g.rows {
		line := make([]cell, len(g.cols))
		for i, c := range g.cols {
			if down, across := r, c; r != gap && c != gap {
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

// holders lists the mesh positions by the tile of an array that they hold.
type holders struct {
	array     int
	start     []int32 // of each tile's group in positions, and the end
	positions []int32
}

func (l *Layout) holders(array int) *holders {
	t := l.tilings[array]
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

func (l *Layout) cellAt(g *grid, down, across int, h *holders) cell {
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
		if part < maxParts || l.mesh.Size() <= roomy {
			c.parts = append(c.parts, holding)
		} else {
			c.left++
		}
	}
	slices.Sort(c.processes)
	c.processes = slices.Compact(c.processes)
	return c
}
