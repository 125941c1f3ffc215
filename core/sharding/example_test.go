package sharding_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

func exampleMesh() *mesh.Mesh {
	m, err := mesh.Uniform([]mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}, 4)
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleNamedSharding_Map() {
	s, err := sharding.New(exampleMesh(), sharding.P([]string{"model", "data"}))
	if err != nil {
		panic(err)
	}
	indexes, replicas, err := s.Map([]int{16})
	fmt.Println(indexes, replicas, err)
	// Output: [[0:2] [8:10] [2:4] [10:12] [4:6] [12:14] [6:8] [14:16]] [0 0 0 0 0 0 0 0] <nil>
}

func ExampleNamedSharding_Check() {
	s, err := sharding.New(exampleMesh(), sharding.P("data"))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Check([]int{30, 128}))
	// Output: sharding: dimension 0 of shape (30, 128) is split 4 ways by axis "data" (size 4), but 30 % 4 = 2; the nearest sizes that divide: 28 or 32
}

func ExampleTiling() {
	s, err := sharding.New(exampleMesh(), sharding.P("model", "data"))
	if err != nil {
		panic(err)
	}
	t, err := s.Tiling([]int{2, 8})
	if err != nil {
		panic(err)
	}
	fmt.Println(t.Count(), t.All(), t.Index(5))
	// Output: 8 [0 4 1 5 2 6 3 7] [1:2, 2:4]
}

func ExampleP() {
	fmt.Println(sharding.P("data", nil, []string{"x", "y"}), sharding.P("data"), sharding.P())
	// Output: P('data', None, ('x', 'y')) P('data',) P()
}
