package sharding

import (
	"encoding/binary"
	"slices"
)

// IndexAt returns the part that the device at a mesh position holds. The shape
// must pass Check.
func (s *NamedSharding) IndexAt(shape []int, position int) Index {
	t := s.tiling(shape)
	return t.Index(t.At(position))
}

// Map returns the index and the replica number of every device, in mesh order. The
// replica number is the number of earlier devices with an equal index. Equal
// indexes share their memory.
func (s *NamedSharding) Map(shape []int) (indexes []Index, replicas []int, err error) {
	t, err := s.Tiling(shape)
	if err != nil {
		return nil, nil, err
	}
	distinct := t.indexes()
	seen := make([]int, t.count)
	indexes, replicas = make([]Index, s.mesh.Size()), make([]int, s.mesh.Size())
	for i, tile := range t.All() {
		indexes[i], replicas[i] = distinct[tile], seen[tile]
		seen[tile]++
	}
	return indexes, replicas, nil
}

// indexes returns the index of every tile, with one allocation for all.
func (t Tiling) indexes() []Index {
	rank := len(t.tiles)
	pairs, list := make(Index, t.count*rank), make([]Index, t.count)
	for tile := range list {
		list[tile] = pairs[tile*rank : (tile+1)*rank : (tile+1)*rank]
		t.Fill(list[tile], tile)
	}
	return list
}

// Part is one distinct index of a process.
type Part struct {
	Index   Index
	Holders []int // mesh positions of this process's devices that hold it, in mesh order
}

// Local returns the distinct indexes of a process, ordered by their first holders
// in mesh order. It is the addressable part of JAX's index map, for any process. It
// is empty for a process without devices in the mesh.
func (s *NamedSharding) Local(shape []int, process int) ([]Part, error) {
	t, err := s.Tiling(shape)
	if err != nil {
		return nil, err
	}
	var parts []Part
	number := map[int]int{}
	for _, position := range s.mesh.Local(process) {
		tile := t.At(position)
		n, ok := number[tile]
		if !ok {
			n = len(parts)
			number[tile] = n
			parts = append(parts, Part{Index: t.Index(tile)})
		}
		parts[n].Holders = append(parts[n].Holders, position)
	}
	return parts, nil
}

// Groups groups the processes of the mesh by their sets of distinct indexes. The
// processes of a group are in ascending order, and the groups are ordered by their
// first process.
func (s *NamedSharding) Groups(shape []int) ([][]int, error) {
	t, err := s.Tiling(shape)
	if err != nil {
		return nil, err
	}
	var groups [][]int
	var held []int
	var key []byte
	number := map[string]int{}
	for _, process := range s.mesh.Processes() {
		held = held[:0]
		for _, position := range s.mesh.Local(process) {
			held = append(held, t.At(position))
		}
		slices.Sort(held)
		key = key[:0]
		for _, tile := range slices.Compact(held) {
			key = binary.AppendUvarint(key, uint64(tile))
		}
		n, ok := number[string(key)]
		if !ok {
			n = len(groups)
			number[string(key)] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], process)
	}
	return groups, nil
}
