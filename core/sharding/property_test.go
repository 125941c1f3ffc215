package sharding_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// TestPlanProperties checks for every process of random meshes, and for two without
// devices, what a loader relies on:
//
//  1. The parts of all processes together are the whole array.
//  2. Two processes hold the same parts if and only if Groups groups them.
//  3. The shard of every device is array[index].
func TestPlanProperties(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := seeded(seed)
			rank := 1 + r.IntN(3)
			s := r.sharding(r.mesh(), rank)
			p := simulate(t, s, r.shape(s, rank))
			p.union(t)
			p.sameParts(t)
			p.shards(t)
		})
	}
}

// simulated is a global array whose elements are their own numbers, with the parts
// that each process reads.
type simulated struct {
	sharding *sharding.NamedSharding
	shape    []int
	parts    map[int][]sharding.Part // by process
}

func simulate(t *testing.T, s *sharding.NamedSharding, shape []int) simulated {
	p := simulated{s, shape, map[int][]sharding.Part{}}
	for process := range 10 {
		parts, err := s.Local(shape, process)
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) > 0 {
			p.parts[process] = parts
		}
	}
	if got := len(p.parts); got != len(s.Mesh().Processes()) {
		t.Fatalf("%d processes hold parts, but %d own devices", got, len(s.Mesh().Processes()))
	}
	return p
}

// elements lists the numbers of the elements of a part, in C order.
func elements(shape []int, x sharding.Index) []int {
	list := []int{0}
	for d, n := range shape {
		var next []int
		for _, base := range list {
			for i := x[d][0]; i < x[d][1]; i++ {
				next = append(next, base*n+i)
			}
		}
		list = next
	}
	return list
}

func (p simulated) union(t *testing.T) {
	total := 1
	for _, n := range p.shape {
		total *= n
	}
	covered := make([]int, total)
	for process, parts := range p.parts {
		own := map[int]bool{}
		for _, part := range parts {
			for _, e := range elements(p.shape, part.Index) {
				if own[e] {
					t.Fatalf("process %d reads element %d twice", process, e)
				}
				own[e] = true
				covered[e]++
			}
		}
	}
	if e := slices.Index(covered, 0); e >= 0 {
		t.Fatalf("%v of shape %v: no process reads element %d", p.sharding, p.shape, e)
	}
}

func (p simulated) sameParts(t *testing.T) {
	groups, err := p.sharding.Groups(p.shape)
	if err != nil {
		t.Fatal(err)
	}
	group, first := map[int]int{}, -1
	for n, members := range groups {
		if members[0] <= first || !slices.IsSorted(members) {
			t.Fatalf("groups %v are out of order", groups)
		}
		first = members[0]
		for _, process := range members {
			group[process] = n
		}
	}
	if len(group) != len(p.parts) {
		t.Fatalf("groups %v do not name every process once", groups)
	}
	for a := range p.parts {
		for b := range p.parts {
			if same := slices.Equal(p.held(a), p.held(b)); same != (group[a] == group[b]) {
				t.Fatalf("%v of shape %v: processes %d and %d hold the same: %v, but groups are %v", p.sharding, p.shape, a, b, same, groups)
			}
		}
	}
}

func (p simulated) held(process int) []string {
	var held []string
	for _, part := range p.parts[process] {
		held = append(held, part.Index.String())
	}
	slices.Sort(held)
	return held
}

func (p simulated) shards(t *testing.T) {
	indexes, _, err := p.sharding.Map(p.shape)
	if err != nil {
		t.Fatal(err)
	}
	holders := 0
	for process, parts := range p.parts {
		last := -1
		for _, part := range parts {
			if part.Holders[0] <= last || !slices.IsSorted(part.Holders) {
				t.Fatalf("the parts of process %d are out of order", process)
			}
			last = part.Holders[0]
			holders += len(part.Holders)
			for _, position := range part.Holders {
				if p.sharding.Mesh().Device(position).Process != process || !indexes[position].Equal(part.Index) {
					t.Fatalf("process %d takes %v to device %d, which holds %v", process, part.Index, position, indexes[position])
				}
			}
		}
	}
	if holders != p.sharding.Mesh().Size() {
		t.Fatalf("%d devices get a part, but there are %d", holders, p.sharding.Mesh().Size())
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
		devices := s.Mesh().Devices()
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
