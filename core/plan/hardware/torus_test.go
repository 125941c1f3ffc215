package hardware_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/tests/random"
)

// text writes a path of a torus: its rings as size, "x" and stride, with "o" for
// a ring and "-" for a chain, then GB/s and slices.
func text(p hardware.Path) string {
	var rings []string
	for _, r := range p.Rings {
		form := "-"
		if r.Wrap {
			form = "o"
		}
		rings = append(rings, fmt.Sprintf("%dx%d%s", r.Size, r.Stride, form))
	}
	return fmt.Sprintf("%s %g GB/s, %d of %d slices", strings.Join(rings, " "), float64(p.Node.BytesPerSecond)/1e9, p.Inner, p.Nodes)
}

func TestAxesOfATorus(t *testing.T) {
	for _, c := range []struct {
		kind    string
		devices int
		mesh    []int
		want    []string
	}{
		// Whole dimensions, in both directions.
		{"tpu-v5p", 64, []int{16, 4}, []string{"4x1o 4x1o 400 GB/s, 16 of 1 slices", "4x1o 200 GB/s, 4 of 1 slices"}},
		{"tpu-v5p", 64, []int{64}, []string{"4x1o 4x1o 4x1o 600 GB/s, 64 of 1 slices"}},
		{"tpu-v5e", 256, []int{16, 16}, []string{"16x1o 100 GB/s, 16 of 1 slices", "16x1o 100 GB/s, 16 of 1 slices"}},
		// 4×8×8: the axis of 4 gets the dimension of 4.
		{"tpu-v5p", 256, []int{64, 4}, []string{"8x1o 8x1o 400 GB/s, 64 of 1 slices", "4x1o 200 GB/s, 4 of 1 slices"}},
		// Without whole cubes of 4×4×4, no dimension is a ring: 2×4×4.
		{"tpu-v5p", 32, []int{8, 4}, []string{"4x1- 2x1- 200 GB/s, 8 of 1 slices", "4x1- 100 GB/s, 4 of 1 slices"}},
		{"tpu-v5p", 125, []int{25, 5}, []string{"5x1- 5x1- 200 GB/s, 25 of 1 slices", "5x1- 100 GB/s, 5 of 1 slices"}},
		// A dimension of 16 of v5e is a ring in any slice.
		{"tpu-v5e", 128, []int{8, 16}, []string{"8x1- 50 GB/s, 8 of 1 slices", "16x1o 100 GB/s, 16 of 1 slices"}},
		// A small slice of v5e has no rings.
		{"tpu-v5e", 16, []int{4, 4}, []string{"4x1- 50 GB/s, 4 of 1 slices", "4x1- 50 GB/s, 4 of 1 slices"}},
		// Part of a dimension: the inner axis is a chain, the outer one passes over it.
		{"tpu-v5e", 256, []int{32, 8}, []string{"2x8o 16x1o 112.5 GB/s, 32 of 1 slices", "8x1- 50 GB/s, 8 of 1 slices"}},
		{"tpu-v5e", 256, []int{16, 1, 4, 4}, []string{"16x1o 100 GB/s, 16 of 1 slices", " 0 GB/s, 1 of 1 slices", "4x4o 25 GB/s, 4 of 1 slices", "4x1- 50 GB/s, 4 of 1 slices"}},
		// With 8 inside 16, the inner axis would have two chains, at 100 GB/s.
		{"tpu-v5e", 128, []int{4, 32}, []string{"4x2- 25 GB/s, 4 of 1 slices", "16x1o 2x1- 150 GB/s, 32 of 1 slices"}},
		// Several slices.
		{"tpu-v5e", 512, []int{2, 256}, []string{" 0 GB/s, 1 of 2 slices", "16x1o 16x1o 200 GB/s, 256 of 1 slices"}},
		{"tpu-v5e", 1024, []int{64, 16}, []string{"16x1o 100 GB/s, 16 of 4 slices", "16x1o 100 GB/s, 16 of 1 slices"}},
	} {
		k, err := hardware.Find(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := k.Cluster(c.devices, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range cluster.Axes(c.mesh) {
			got = append(got, text(p))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d %s, torus %v, mesh %v:\ngot  %q\nwant %q", c.devices, c.kind, cluster.Torus, c.mesh, got, c.want)
		}
	}
}

// An axis that does not fit the dimensions has one link.
func TestAxisBesideTheDimensions(t *testing.T) {
	c := hardware.Cluster{Devices: 36, PerNode: 36, Topology: hardware.Torus2, Torus: []int{6, 6}, Node: hardware.Link{BytesPerSecond: 400e9}}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	for i, p := range c.Axes([]int{4, 9}) {
		if want := fmt.Sprintf("%dx1- 100 GB/s, %d of 1 slices", p.Size, p.Size); text(p) != want {
			t.Errorf("axis %d: %s, want %s", i, text(p), want)
		}
	}
}

func TestSlices(t *testing.T) {
	// Google's table of v5p has these shapes.
	for devices, want := range map[int][]int{4: {1, 2, 2}, 8: {2, 2, 2}, 32: {2, 4, 4}, 64: {4, 4, 4}, 128: {4, 4, 8}, 256: {4, 8, 8}, 512: {8, 8, 8}, 1024: {8, 8, 16}, 2048: {8, 16, 16}, 4096: {16, 16, 16}, 6144: {16, 16, 24}, 7: {1, 1, 7}, 248: {2, 4, 31}} {
		k, err := hardware.Find("tpu-v5p")
		if err != nil {
			t.Fatal(err)
		}
		c, err := k.Cluster(devices, 0)
		if err != nil || !slices.Equal(c.Torus, want) {
			t.Errorf("%d devices: %v, %v, want %v", devices, c.Torus, err, want)
		}
	}
}

// The rings of all axes of a slice are the slice: the parts of a dimension
// multiply to its size, and the bandwidths of axes never exceed the links.
func TestRingsMakeUpTheTorus(t *testing.T) {
	random.Rounds(t, 300, 20_000, func(t *testing.T, r *rand.Rand) {
		c := hardware.Cluster{Topology: random.One(r, hardware.Torus2, hardware.Torus3), Wrap: random.One(r, 0, 4, 16), Node: hardware.Link{BytesPerSecond: 1200e9}, Network: hardware.Link{BytesPerSecond: 1e9}}
		c.PerNode = 1
		for range c.Topology.Dimensions() {
			size := random.One(r, 1, 2, 3, 4, 6, 8, 16)
			c.Torus, c.PerNode = append(c.Torus, size), c.PerNode*size
		}
		outer := random.One(r, 1, 1, 2, 3)
		c.Devices = c.PerNode * outer
		if err := c.Complete(); err != nil {
			t.Fatal(err)
		}
		sizes := split(r, c.Devices)
		links := int64(0)
		for i, p := range c.Axes(sizes) {
			product := 1
			for _, ring := range p.Rings {
				product *= ring.Size
				if ring.Stride == 1 {
					links += ring.BytesPerSecond
				}
			}
			if p.Size != sizes[i] || product != p.Inner || (p.Nodes == 1) != (p.Inner == p.Size) {
				t.Fatalf("torus %v of %d devices, mesh %v: axis %d is %+v", c.Torus, c.Devices, sizes, i, p)
			}
		}
		if links > c.Node.BytesPerSecond {
			t.Errorf("torus %v, mesh %v: the axes have %d bytes per second, but a device has %d", c.Torus, sizes, links, c.Node.BytesPerSecond)
		}
	})
}

// split returns up to four factors of a number.
func split(r *rand.Rand, n int) []int {
	var sizes []int
	for range r.IntN(4) {
		f := random.One(r, divisors(n)...)
		sizes, n = append(sizes, f), n/f
	}
	return append(sizes, n)
}

func BenchmarkAxes(b *testing.B) {
	k, err := hardware.Find("tpu-v7")
	if err != nil {
		b.Fatal(err)
	}
	c, err := k.Cluster(8192, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Axes([]int{2, 16, 8, 1, 2, 16})
	}
}
