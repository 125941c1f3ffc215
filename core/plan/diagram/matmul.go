package diagram

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// maxSide bounds the side of a matrix, so that its bytes fit int64.
const maxSide = 1 << 28

// Matmul is the product y = x × w of two matrices that are partitioned over a mesh.
type Matmul struct {
	Axes []mesh.Axis
	X, W Matrix
	Type dtype.Type // type of the elements of y
}

// Matrix is a matrix with its partition spec.
type Matrix struct {
	Shape []int
	Spec  sharding.PartitionSpec
}

// Draw draws both operands and the product with the devices that hold each part. It
// also says what has to move between devices.
func (p Matmul) Draw() (*Diagram, error) {
	m, err := uniform("/mesh/axes", p.Axes)
	if err != nil {
		return nil, err
	}
	if !p.Type.Valid() {
		return nil, invalid("/dtype", "the element type is missing")
	}
	x, err := newOperand(m, "x", "/x", p.X)
	if err != nil {
		return nil, err
	}
	w, err := newOperand(m, "w", "/w", p.W)
	if err != nil {
		return nil, err
	}
	if x.shape[1] != w.shape[0] {
		return nil, invalid("/w/shape/0", "x has %d columns, but w has %d rows", x.shape[1], w.shape[0]).WithHint("use %d", x.shape[1])
	}
	return product{m, x, w, p.Type}.draw()
}

// operand is a matrix of a product: x, w or y.
type operand struct {
	name  string
	shape []int
	axes  [2][]string // that split the rows and the columns
	tiles sharding.Tiling
	spec  string
}

func newOperand(m *mesh.Mesh, name, path string, matrix Matrix) (*operand, error) {
	if len(matrix.Shape) != 2 {
		return nil, invalid(path+"/shape", "a matrix has 2 dimensions, but the shape has %d", len(matrix.Shape))
	}
	for i, n := range matrix.Shape {
		if err := limit(fmt.Sprintf("%s/shape/%d", path, i), n, maxSide); err != nil {
			return nil, err
		}
	}
	s, err := sharding.New(m, matrix.Spec)
	if err != nil {
		return nil, at(path+"/spec", err)
	}
	o := &operand{name: name, shape: matrix.Shape, spec: matrix.Spec.String()}
	if o.tiles, err = s.Tiling(matrix.Shape); err != nil {
		return nil, at(path+"/spec", err)
	}
	for d, entry := range matrix.Spec {
		for _, axis := range entry {
			if _, a, _ := m.Axis(axis); a.Size > 1 {
				o.axes[d] = append(o.axes[d], axis)
			}
		}
	}
	return o, nil
}

// partitioned returns a matrix with rows and columns split by the given axes.
func (p product) partitioned(name string, shape []int, axes [2][]string) (*operand, error) {
	return newOperand(p.mesh, name, "", Matrix{shape, sharding.PartitionSpec(axes[:])})
}

// local returns the shape of the part that a device holds.
func (o *operand) local() []int { return o.tiles.Index(0).Shape() }

// product is a product that can be drawn.
type product struct {
	mesh  *mesh.Mesh
	x, w  *operand
	dtype dtype.Type // type of the elements of y
}

func (p product) draw() (*Diagram, error) {
	x, w, moves, err := p.gathered()
	if err != nil {
		return nil, err
	}
	y, err := p.partitioned("y", []int{x.shape[0], w.shape[1]}, [2][]string{x.axes[0], w.axes[1]})
	if err != nil {
		return nil, err
	}
	if inner := x.axes[1]; len(inner) > 0 {
		rows, columns := y.localSizes()
		bytes := rows * columns * int64(p.dtype.Size())
		moves = append(moves, fmt.Sprintf("Each result is a part of a sum: an all-reduce over %s adds %s of %s on every device.", axisNames(inner), wording.Bytes(bytes), p.dtype))
	}
	if moves == nil {
		moves = []string{"No data moves between devices."}
	}
	d := &Diagram{title: fmt.Sprintf("%s × %s on %s", wording.Shape(x.shape), wording.Shape(w.shape), wording.Plain(p.mesh.String()))}
	multiply := fmt.Sprintf("Each device multiplies %s × %s = %s.", wording.Shape(x.local()), wording.Shape(w.local()), wording.Shape(y.local()))
	d.about = d.title + "."
	for _, o := range []*operand{p.x, p.w, y} {
		d.about += fmt.Sprintf(" %s has the spec %s and parts of shape %s.", o.name, wording.Plain(o.spec), wording.Shape(o.local()))
	}
	d.about += " " + multiply
	d.add(space(8), flow{p.x.block(0), signs("×"), p.w.block(p.x.tiles.Tiles()[0]), signs("="), y.block(0)}, space(6), note{plain, multiply})
	for _, text := range moves {
		d.about += " " + text
		d.add(note{muted, text})
	}
	if !slices.Equal(p.x.axes[1], p.w.axes[0]) { // then gathered has chosen one of several ways
		d.add(note{muted, "A compiler may move data in another way."})
	}
	d.add(note{muted, "The numbers in the cells are devices. Several numbers are replicas."})
	return d, nil
}

// gathered returns the operands as the devices multiply them, and says what happens to
// them first.
//
//   - The axes that split the rows of x must not split w, because a device needs all of
//     w that belongs to its rows. The axes that split the columns of w must not split
//     the inner dimension of x.
//   - If only one operand is split along the inner dimension, a device can use its part
//     of the other one, which it has already. The products are then parts of sums. The
//     devices do so if the all-reduce of the sums moves fewer bytes than an all-gather of
//     the operand that is split.
//   - If both are split along it, but differently, both are gathered.
//
// XLA's partitioner mostly does the same, but in some cases moves data differently.
func (p product) gathered() (x, w *operand, moves []string, err error) {
	x, w = p.x, p.w
	rows := [2][]string{without(w.axes[0], x.axes[0]), without(w.axes[1], x.axes[0])}
	if w, moves, err = p.gather(w, rows, moves); err != nil {
		return nil, nil, nil, err
	}
	if x, moves, err = p.gather(x, [2][]string{x.axes[0], without(x.axes[1], w.axes[1])}, moves); err != nil {
		return nil, nil, nil, err
	}
	inner, other := x.axes[1], w.axes[0]
	// Each of n devices sends 2(n-1)/n of y in an all-reduce, and (n-1)/n of the gathered
	// operand in an all-gather. The common factor is left out.
	rowsOfX, _ := x.localSizes()
	_, columnsOfW := w.localSizes()
	reduced := 2 * rowsOfX * columnsOfW
	switch {
	case slices.Equal(inner, other):
	case len(inner) == 0 && reduced < columnsOfW*int64(w.shape[0]):
		moves = append(moves, fmt.Sprintf("Each device uses only its columns of x, split over %s, which it has already.", axisNames(other)))
		x, err = p.partitioned(x.name, x.shape, [2][]string{x.axes[0], other})
	case len(other) == 0 && reduced < rowsOfX*int64(x.shape[1]):
		moves = append(moves, fmt.Sprintf("Each device uses only its rows of w, split over %s, which it has already.", axisNames(inner)))
		w, err = p.partitioned(w.name, w.shape, [2][]string{inner, w.axes[1]})
	default:
		if w, moves, err = p.gather(w, [2][]string{nil, w.axes[1]}, moves); err == nil {
			x, moves, err = p.gather(x, [2][]string{x.axes[0], nil}, moves)
		}
	}
	return x, w, moves, err
}

// localSizes returns the rows and the columns of the part that a device holds.
func (o *operand) localSizes() (rows, columns int64) {
	local := o.local()
	return int64(local[0]), int64(local[1])
}

// gather returns the operand with fewer axes, and adds the all-gather to moves, unless
// all axes are kept.
func (p product) gather(o *operand, keep [2][]string, moves []string) (*operand, []string, error) {
	lost := append(without(o.axes[0], keep[0]), without(o.axes[1], keep[1])...)
	if len(lost) == 0 {
		return o, moves, nil
	}
	g, err := p.partitioned(o.name, o.shape, keep)
	if err != nil {
		return nil, nil, err
	}
	return g, append(moves, fmt.Sprintf("An all-gather of %s over %s comes first: from %s to %s on every device.", o.name, axisNames(lost), wording.Shape(o.local()), wording.Shape(g.local()))), nil
}

// block draws a matrix. If first is 0, each row has a color, otherwise each column. The
// colors of columns come after the first ones, which rows of another matrix have.
func (o *operand) block(first int) block {
	tiles := o.tiles.Tiles()
	b := block{
		head: []string{o.name + " " + wording.Shape(o.shape), wording.Plain(o.spec)},
		foot: []string{"local " + wording.Shape(o.local())},
	}
	holders := make([][]int, o.tiles.Count())
	for position, tile := range o.tiles.All() {
		holders[tile] = append(holders[tile], position)
	}
	for _, j := range drawing.Shown(tiles[1], maxLines/2) {
		b.cols = append(b.cols, spanOrGap(j, tiles[1], o.shape[1], "⋯"))
	}
	for _, i := range drawing.Shown(tiles[0], maxLines) {
		b.rows = append(b.rows, spanOrGap(i, tiles[0], o.shape[0], "⋮"))
		var row []cell
		for _, j := range drawing.Shown(tiles[1], maxLines/2) {
			c := cell{lines: []string{omission}}
			if i != drawing.Gap && j != drawing.Gap {
				c.lines[0] = listed(holders[i*tiles[1]+j], 4, " ")
				c.hue = hue(1 + i)
				if first > 0 {
					c.hue = hue(1 + first + j)
				}
			}
			row = append(row, c)
		}
		b.cells = append(b.cells, row)
	}
	return b
}

// spanOrGap writes the range of part i of a size, or the sign of parts left out.
func spanOrGap(i, parts, size int, sign string) string {
	if i == drawing.Gap {
		return sign
	}
	return span(i, parts, size)
}
