package sharding

import "slices"

// Tiling numbers the distinct parts of an array, its tiles, from 0 in row-major
// order. Devices with equal indexes have the same tile.
//
// A spec uses every mesh axis at most once. So the tile of a device is a linear
// function of its mesh coordinates: the sum of coordinate × weight. All tiles of a
// million devices are computed in a few milliseconds.
//
// Tiles do not depend on the sizes of the array, with one exception. A dimension of
// size zero is a single tile, because all its parts are equal.
type Tiling struct {
	sizes   []int // sizes of the mesh's axes
	weights []int // weights of the mesh's axes; 0 if an axis replicates or has one device
	shape   []int
	tiles   []int // number of tiles along each dimension
	count   int
}

// Tiling checks the shape and returns its tiling.
func (s *NamedSharding) Tiling(shape []int) (Tiling, error) {
	if err := s.Check(shape); err != nil {
		return Tiling{}, err
	}
	return s.tiling(shape), nil
}

func (s *NamedSharding) tiling(shape []int) Tiling {
	t := Tiling{sizes: s.sizes, weights: make([]int, len(s.sizes)), shape: slices.Clone(shape), tiles: make([]int, len(shape)), count: 1}
	for d := len(shape) - 1; d >= 0; d-- {
		t.tiles[d] = 1
		if d >= len(s.axes) || shape[d] == 0 {
			continue
		}
		for _, a := range slices.Backward(s.axes[d]) {
			if s.sizes[a] > 1 {
				t.weights[a] = t.count
				t.count *= s.sizes[a]
			}
		}
		t.tiles[d] = s.tiles[d]
	}
	return t
}

// Count returns the number of tiles.
func (t Tiling) Count() int { return t.count }

// Tiles returns a copy of the number of tiles along each dimension. The product is
// Count.
func (t Tiling) Tiles() []int { return slices.Clone(t.tiles) }

// Same reports whether both tilings assign every device the same tile. Both must be
// over the same mesh.
func (t Tiling) Same(o Tiling) bool { return slices.Equal(t.weights, o.weights) }

// Weights returns a copy of the weights of all mesh axes. Tilings of one mesh with
// equal weights are the same.
func (t Tiling) Weights() []int { return slices.Clone(t.weights) }

// Leading returns the tiling of the first dims dimensions.
func (t Tiling) Leading(dims int) Tiling {
	rest := 1
	for _, k := range t.tiles[dims:] {
		rest *= k
	}
	weights := slices.Clone(t.weights)
	for a := range weights {
		weights[a] /= rest // axes of later dimensions have smaller weights, which become 0
	}
	return Tiling{sizes: t.sizes, weights: weights, shape: t.shape[:dims], tiles: t.tiles[:dims], count: t.count / rest}
}

// At returns the tile of the device at a mesh position.
func (t Tiling) At(position int) int {
	tile := 0
	for a := len(t.sizes) - 1; a >= 0; a-- {
		tile += position % t.sizes[a] * t.weights[a]
		position /= t.sizes[a]
	}
	return tile
}

// All returns the tile of every device, in mesh order.
func (t Tiling) All() []int32 {
	total := 1
	for _, size := range t.sizes {
		total *= size
	}
	all := make([]int32, 1, total)
	for a := len(t.sizes) - 1; a >= 0; a-- { // all holds the tiles of the devices along the axes after a
		inner := len(all)
		for c := 1; c < t.sizes[a]; c++ {
			for _, tile := range all[:inner] {
				all = append(all, tile+int32(c*t.weights[a]))
			}
		}
	}
	return all
}

// Index returns the index of a tile.
func (t Tiling) Index(tile int) Index {
	x := make(Index, len(t.tiles))
	t.Fill(x, tile)
	return x
}

// Fill writes the index of a tile to x, which must have a [start, stop) pair for
// every dimension.
func (t Tiling) Fill(x Index, tile int) {
	for d := len(t.tiles) - 1; d >= 0; d-- {
		size, k := t.shape[d]/t.tiles[d], tile%t.tiles[d]
		x[d] = [2]int{k * size, (k + 1) * size}
		tile /= t.tiles[d]
	}
}

// Replicas returns the replica number of every device, in mesh order: the number
// of earlier devices with an equal index.
func (t Tiling) Replicas() []int32 {
	replicas, seen := t.All(), make([]int32, t.count)
	for i, tile := range replicas {
		replicas[i] = seen[tile]
		seen[tile]++
	}
	return replicas
}
