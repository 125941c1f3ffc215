package conformance

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

func TestRings(t *testing.T) {
	text, err := os.ReadFile("testdata/rings.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		JAX   string
		Cases []struct {
			Torus, Mesh []int
			Rings       [][]int
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, c := range table.Cases {
		devices := 1
		for _, n := range c.Torus {
			devices *= n
		}
		cluster := hardware.Cluster{Devices: devices, PerNode: devices, Topology: hardware.Torus3, Torus: c.Torus, Wrap: 1, Node: hardware.Link{BytesPerSecond: 600e9}}
		if err := cluster.Complete(); err != nil {
			t.Fatal(err)
		}
		rings, parts := dimensions(cluster.Axes(c.Mesh), c.Torus)
		switch {
		case c.Rings == nil && !parts:
			t.Errorf("torus %v, mesh %v: JAX finds no whole dimensions, but the axes have %v", c.Torus, c.Mesh, rings)
		case c.Rings != nil && !slices.EqualFunc(rings, c.Rings, slices.Equal):
			t.Errorf("torus %v, mesh %v: got %v, JAX has %v", c.Torus, c.Mesh, rings, c.Rings)
		case c.Rings != nil:
			whole++
		}
	}
	if whole < 100 {
		t.Errorf("only %d of %d cases of JAX %s have whole dimensions", whole, len(table.Cases), table.JAX)
	}
}

// dimensions returns the sizes of the rings of every axis, ascending, and whether
// one of them is a part of a dimension.
func dimensions(paths []hardware.Path, torus []int) (rings [][]int, parts bool) {
	for _, p := range paths {
		sizes := []int{}
		for _, r := range p.Rings {
			sizes = append(sizes, r.Size)
			parts = parts || r.Stride > 1 || !slices.Contains(torus, r.Size) || !r.Wrap
		}
		slices.Sort(sizes)
		rings = append(rings, sizes)
	}
	return rings, parts
}
