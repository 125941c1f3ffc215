package sharding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// brute computes the index of a device directly from the definition, dimension by
// dimension.
func brute(m *mesh.Mesh, spec sharding.PartitionSpec, shape []int, position int) sharding.Index {
	axes, x := m.Axes(), make(sharding.Index, len(shape))
	c := make([]int, len(axes)) // the coordinates of the device
	for i := len(c) - 1; i >= 0; i-- {
		c[i] = position % axes[i].Size
		position /= axes[i].Size
	}
	for d, n := range shape {
		tile, tiles := 0, 1
		for _, name := range append(spec, make([][]string, len(shape))...)[d] {
			a, axis, _ := m.Axis(name)
			tile, tiles = tile*axis.Size+c[a], tiles*axis.Size
		}
		x[d] = [2]int{tile * (n / tiles), (tile + 1) * (n / tiles)}
	}
	return x
}

// compare compares all results of the package for an array with the definition.
func compare(t *testing.T, s *sharding.NamedSharding, shape []int) {
	t.Helper()
	m := s.Mesh()
	indexes, replicas, err := s.Map(shape)
	if err != nil {
		t.Fatal(err)
	}
	tiling, _ := s.Tiling(shape)
	seen := map[string]int{}
	everywhere := true
	for i := range m.Size() {
		want := brute(m, s.Spec(), shape, i)
		key := want.String()
		if !indexes[i].Equal(want) || !s.IndexAt(shape, i).Equal(want) || !tiling.Index(tiling.At(i)).Equal(want) || int(tiling.All()[i]) != tiling.At(i) {
			t.Fatalf("%v of shape %v: device %d holds %v, want %v", s, shape, i, indexes[i], want)
		}
		if replicas[i] != seen[key] || int(tiling.Replicas()[i]) != seen[key] {
			t.Fatalf("%v of shape %v: device %d is replica %d, want %d", s, shape, i, replicas[i], seen[key])
		}
		seen[key]++
		for d, n := range shape {
			everywhere = everywhere && (want[d] == [2]int{0, n})
		}
	}
	if tiling.Count() != len(seen) {
		t.Fatalf("%v of shape %v: %d tiles, want %d", s, shape, tiling.Count(), len(seen))
	}
	if everywhere != s.IsFullyReplicated() && !slices.Contains(shape, 0) {
		t.Fatalf("%v: IsFullyReplicated() = %v", s, s.IsFullyReplicated())
	}
	compareLeading(t, s, shape)
}

// compareLeading checks that the tilings of the first dimensions agree.
func compareLeading(t *testing.T, s *sharding.NamedSharding, shape []int) {
	t.Helper()
	tiling, _ := s.Tiling(shape)
	for dims := range len(shape) + 1 {
		leading := tiling.Leading(dims)
		for i := range s.Mesh().Size() {
			got, want := leading.Index(leading.At(i)), brute(s.Mesh(), s.Spec(), shape, i)[:dims]
			if !got.Equal(want) {
				t.Fatalf("%v of shape %v: the first %d dimensions of device %d are %v, want %v", s, shape, dims, i, got, want)
			}
		}
	}
}

// random is a source of meshes, specs and shapes.
type random struct{ *rand.Rand }

func seeded(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 0))} }

// mesh makes a mesh of up to 4 axes and 48 devices, in any order, with sparse ids, of
// up to 6 processes with any numbers of devices.
func (r random) mesh() *mesh.Mesh {
	size, axes := 1, make([]mesh.Axis, r.IntN(5))
	for i := range axes {
		n := 1 + r.IntN(4)
		if size*n > 48 {
			n = 1
		}
		axes[i] = mesh.Axis{Name: string(rune('a' + i)), Size: n}
		size *= n
	}
	ids, processes := r.Perm(3*size), r.Perm(9)[:1+r.IntN(6)]
	devices := make([]mesh.Device, size)
	for i := range devices {
		devices[i] = mesh.Device{Process: processes[r.IntN(len(processes))], ID: ids[i]}
	}
	m, err := mesh.New(axes, devices)
	if err != nil {
		panic(err)
	}
	return m
}

// sharding distributes the axes of a mesh, in any order, over up to rank entries.
func (r random) sharding(m *mesh.Mesh, rank int) *sharding.NamedSharding {
	spec := make(sharding.PartitionSpec, r.IntN(rank+1))
	axes := m.Axes()
	for _, a := range r.Perm(len(axes)) {
		if d := r.IntN(rank + 2); d < len(spec) {
			spec[d] = append(spec[d], axes[a].Name)
		}
	}
	s, err := sharding.New(m, spec)
	if err != nil {
		panic(err)
	}
	return s
}

// shape makes a shape with sizes that divide.
func (r random) shape(s *sharding.NamedSharding, rank int) []int {
	shape := make([]int, rank)
	for d := range shape {
		shape[d] = s.Tiles(d) * r.IntN(4)
		if r.IntN(8) > 0 {
			shape[d] = max(shape[d], s.Tiles(d))
		}
	}
	return shape
}

func TestAgainstBruteForce(t *testing.T) {
	for seed := range uint64(2000) {
		r := seeded(seed)
		rank := r.IntN(5)
		s := r.sharding(r.mesh(), rank)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { compare(t, s, r.shape(s, rank)) })
	}
}

// What a device holds does not depend on the process that owns it. If the devices of
// a mesh are reordered, their parts move with the positions.
func TestOwnershipDoesNotMoveData(t *testing.T) {
	for seed := range uint64(200) {
		r := seeded(seed)
		s := r.sharding(r.mesh(), 2)
		shape := r.shape(s, 2)
		want, wantReplicas, _ := s.Map(shape)
		devices := make([]mesh.Device, s.Mesh().Size())
		for i := range devices {
			devices[i] = s.Mesh().Device(i)
		}
		r.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
		for i := range devices {
			devices[i].Process = r.IntN(4)
		}
		m, err := mesh.New(s.Mesh().Axes(), devices)
		if err != nil {
			t.Fatal(err)
		}
		other, err := sharding.New(m, s.Spec())
		if err != nil {
			t.Fatal(err)
		}
		got, gotReplicas, _ := other.Map(shape)
		if !slices.EqualFunc(got, want, sharding.Index.Equal) || !slices.Equal(gotReplicas, wantReplicas) {
			t.Errorf("seed %d: %v of shape %v depends on the processes", seed, s, shape)
		}
	}
}

// FuzzAgainstBruteForce makes a mesh, a spec and a shape of bytes. If New and Check
// accept them, the results must agree with the definition. Else a rule must refuse
// them.
func FuzzAgainstBruteForce(f *testing.F) {
	f.Add(uint64(1), []byte{2, 3}, []byte{1, 0, 2, 0}, []byte{4, 6})
	f.Add(uint64(2), []byte{4, 1, 2}, []byte{3, 1, 0, 2}, []byte{0, 8, 1})
	f.Add(uint64(3), []byte{}, []byte{}, []byte{})
	f.Add(uint64(4), []byte{2, 2}, []byte{1, 1, 0}, []byte{4})
	f.Fuzz(func(t *testing.T, seed uint64, sizes, entries, dims []byte) {
		m := fuzzMesh(seeded(seed), sizes)
		var spec sharding.PartitionSpec
		uses, fits := map[string]int{}, true
		for _, b := range entries[:min(len(entries), 12)] { // 0 begins an entry, others name axes
			if b == 0 || len(spec) == 0 {
				spec = append(spec, nil)
			}
			if b != 0 {
				name := string(rune('a' + (b-1)%6))
				spec[len(spec)-1] = append(spec[len(spec)-1], name)
				_, _, known := m.Axis(name)
				fits = fits && known && uses[name] == 0
				uses[name]++
			}
		}
		s, err := sharding.New(m, spec)
		if (err == nil) != fits {
			t.Fatalf("New(%v, %v) = %v", m, spec, err)
		}
		if err != nil {
			return
		}
		shape := make([]int, min(len(dims), 6))
		fits = len(spec) <= len(shape)
		for d := range shape {
			shape[d] = int(dims[d])
			fits = fits && shape[d]%s.Tiles(d) == 0
		}
		if err := s.Check(shape); (err == nil) != fits {
			t.Fatalf("%v of shape %v: %v", s, shape, err)
		}
		if fits {
			compare(t, s, shape)
		}
	})
}

func fuzzMesh(r random, sizes []byte) *mesh.Mesh {
	size, axes := 1, []mesh.Axis{}
	for i, b := range sizes[:min(len(sizes), 5)] {
		n := 1 + int(b)%5
		if size*n > 64 {
			break
		}
		axes = append(axes, mesh.Axis{Name: string(rune('a' + i)), Size: n})
		size *= n
	}
	devices := make([]mesh.Device, size)
	for i, id := range r.Perm(size) {
		devices[i] = mesh.Device{Process: id % 3, ID: 7 * id}
	}
	m, err := mesh.New(axes, devices)
	if err != nil {
		panic(err)
	}
	return m
}
