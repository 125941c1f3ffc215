package layout

import (
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// tiling numbers the distinct parts of an array. A device's tile is a linear
// function of its mesh coordinates, because a spec uses every axis at most
// once: tile = sum of coordinate × weight. Two arrays with the same weights
// are cut alike whatever their sizes, so that a mesh of a million devices is
// walked once for all of them.
type tiling struct {
	weights []int // per mesh axis; 0 where the axis replicates
	tiles   []int // per dimension of the array
	count   int   // product of tiles; 0 for a broken array
}

// tilingOf needs a spec that fits. A dimension of size zero is one tile: all
// its parts are equal.
func tilingOf(m *mesh.Mesh, spec sharding.PartitionSpec, shape []int) tiling {
	t := tiling{weights: make([]int, m.NumAxes()), tiles: make([]int, len(shape)), count: 1}
	for d := len(shape) - 1; d >= 0; d-- {
		t.tiles[d] = 1
		if d >= len(spec) || shape[d] == 0 {
			continue
		}
		for _, name := range slices.Backward(spec[d]) {
			n, axis, _ := m.Axis(name)
			t.weights[n] = t.count
			t.count *= axis.Size
			t.tiles[d] *= axis.Size
		}
	}
	return t
}

// leading gives the tiling of the first dims dimensions alone.
func (t tiling) leading(dims int) tiling {
	rest := 1
	for _, k := range t.tiles[dims:] {
		rest *= k
	}
	w := slices.Clone(t.weights)
	for a := range w {
		w[a] /= rest // 0 for the axes of later dimensions, whose weights are smaller
	}
	return tiling{weights: w, tiles: t.tiles[:dims], count: t.count / rest}
}

func (t tiling) same(o tiling) bool { return slices.Equal(t.weights, o.weights) }

// at gives the tile of the device at a mesh position.
func (t tiling) at(m []mesh.Axis, position int) int {
	tile := 0
	for a := len(m) - 1; a >= 0; a-- {
		tile += position % m[a].Size * t.weights[a]
		position /= m[a].Size
	}
	return tile
}

// all gives the tile of every device, in mesh order.
func (t tiling) all(m []mesh.Axis) []int32 {
	ids := []int32{0}
	for a, axis := range m {
		next := make([]int32, 0, len(ids)*axis.Size)
		for _, id := range ids {
			for c := range axis.Size {
				next = append(next, id+int32(c*t.weights[a]))
			}
		}
		ids = next
	}
	return ids
}

// index gives the part of an array of this shape that a tile is.
func (t tiling) index(shape []int, tile int) sharding.Index {
	x := make(sharding.Index, len(t.tiles))
	t.fill(x, shape, tile)
	return x
}

// fill writes the index of a tile to x.
func (t tiling) fill(x sharding.Index, shape []int, tile int) {
	for d := len(t.tiles) - 1; d >= 0; d-- {
		size := shape[d] / t.tiles[d]
		k := tile % t.tiles[d]
		tile /= t.tiles[d]
		x[d] = [2]int{k * size, (k + 1) * size}
	}
}

// shardBytes gives the size of one part of an array.
func shardBytes(a Array, t tiling) int64 {
	n := int64(a.Type.Size())
	for d, size := range a.Shape {
		n *= int64(size / t.tiles[d])
	}
	return n
}

// key tells tilings apart whose weights differ.
func (t tiling) key() string {
	var key []byte
	for _, w := range t.weights {
		key = binary.AppendUvarint(key, uint64(w))
	}
	return string(key)
}
