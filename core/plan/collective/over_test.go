package collective_test

import (
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/tests/random"
)

func cluster(t *testing.T, kind string, devices int) *hardware.Cluster {
	t.Helper()
	k, err := hardware.Find(kind)
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.Cluster(devices, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Times that are worked out by hand: bytes over bandwidth, and latencies.
func TestOver(t *testing.T) {
	h100, v5p, v5e := cluster(t, "h100-80", 32), cluster(t, "tpu-v5p", 64), cluster(t, "tpu-v5e", 512)
	const gb = 1_000_000_000
	fast := v5e.Axis(1, 512)
	fast.Network.BytesPerSecond = 1_000 * gb
	for _, c := range []struct {
		what  string
		path  hardware.Path
		op    collective.Op
		bytes int64
		want  collective.Cost
	}{
		{"one device", h100.Axis(1, 1), collective.AllReduce, gb, collective.Cost{}},
		{
			"8 devices of a node: 7/8 GB at 450 GB/s twice, 14 steps of 3.4 µs", h100.Axis(1, 8), collective.AllReduce, gb,
			collective.Cost{Steps: 14, Sent: 1_750_000_000, Ns: 3_888_889 + 14*3_400},
		},
		{
			"4 nodes, one device of each: 3/4 GB at 50 GB/s", h100.Axis(8, 4), collective.AllGather, gb,
			collective.Cost{Steps: 3, Sent: 750_000_000, Network: 750_000_000, Ns: 15_000_000 + 3*14_000},
		},
		{
			// In the node 7/8 GB at 450 GB/s; between nodes 3/4 of 1/8 GB at 50 GB/s; the
			// nodes are faster: 1.94 ms against 1.875 ms.
			"4 nodes of 8", h100.Axis(1, 32), collective.ReduceScatter, gb,
			collective.Cost{Steps: 10, Sent: 968_750_000, Network: 93_750_000, Ns: 1_944_444 + 7*3_400 + 3*14_000},
		},
		{
			// 2 devices of each of 4 nodes: 3/4 of 1/2 GB at 50 GB/s is the larger part.
			"4 nodes, 2 devices of each", h100.Axis(4, 8), collective.AllReduce, gb,
			collective.Cost{Steps: 8, Sent: 1_750_000_000, Network: 750_000_000, Ns: 15_000_000 + 2*3_400 + 6*14_000},
		},
		{
			"all-to-all of 4 nodes of 8: 24/32 GB at 50 GB/s", h100.Axis(1, 32), collective.AllToAll, gb,
			collective.Cost{Steps: 31, Sent: 968_750_000, Network: 750_000_000, Ns: 15_000_000 + 7*3_400 + 24*14_000},
		},
		{"permute across nodes", h100.Axis(1, 32), collective.Permute, gb, collective.Cost{Steps: 1, Sent: gb, Network: gb, Ns: 20_000_000 + 14_000}},
		{
			"a ring of 4 chips in both directions: 3/4 GB at 200 GB/s, 2 hops", v5p.Axis(1, 4), collective.AllGather, gb,
			collective.Cost{Steps: 2, Sent: 750_000_000, Ns: 3_750_000 + 2*1_000},
		},
		{
			"three rings: 63/64 GB at 600 GB/s, 6 hops", v5p.Axis(1, 64), collective.AllGather, gb,
			collective.Cost{Steps: 6, Sent: 984_375_000, Ns: 1_640_625 + 6*1_000},
		},
		{"a message to the next chip, one direction: 100 GB/s", v5p.Axis(1, 4), collective.Permute, gb, collective.Cost{Steps: 1, Sent: gb, Ns: 10_000_000 + 1_000}},
		{"a message over 4 chips, on links that 4 groups share: 12.5 GB/s", v5e.Axis(4, 4), collective.Permute, gb, collective.Cost{Steps: 4, Sent: gb, Ns: 80_000_000 + 4*1_000}},
		{
			// 1/4 GB to each of 4 positions: hops 1+2+1 = 4, so 1 GB at 200 GB/s.
			"all-to-all in a ring of 4", v5p.Axis(1, 4), collective.AllToAll, gb,
			collective.Cost{Steps: 2, Sent: 750_000_000, Ns: 5_000_000 + 2*1_000},
		},
		{
			// A part of a dimension of 16 without a ring: the middle link carries 2·2/4 GB
			// of an all-to-all, and an all-gather passes 3/4 GB, both at 50 GB/s.
			"all-to-all in a chain of 4", v5e.Axis(1, 4), collective.AllToAll, gb,
			collective.Cost{Steps: 3, Sent: 750_000_000, Ns: 20_000_000 + 3*1_000},
		},
		{"all-gather in a chain of 4", v5e.Axis(1, 4), collective.AllGather, gb, collective.Cost{Steps: 3, Sent: 750_000_000, Ns: 15_000_000 + 3*1_000}},
		{
			// 255/256 GB at 200 GB/s in each slice, and 1/2 of 1/256 GB at 3.125 GB/s.
			"two slices of 256", v5e.Axis(1, 512), collective.AllGather, gb,
			collective.Cost{Steps: 17, Sent: 998_046_875, Network: 1_953_125, Ns: 4_980_469 + 16*1_000 + 14_000},
		},
		{
			// 1/2 GB stays in the slice, 64/16 of it pass a ring at 100 GB/s.
			"all-to-all of two slices of 256 with a fast network", fast, collective.AllToAll, gb,
			collective.Cost{Steps: 272, Sent: 998_046_875, Network: 500_000_000, Ns: 20_000_000 + 16*1_000 + 256*14_000},
		},
		{
			// 2·1001·6/16 = 750.75 bytes to other nodes.
			"bytes are rounded up", h100.Axis(4, 8), collective.AllReduce, 1001,
			collective.Cost{Steps: 8, Sent: 1752, Network: 751, Ns: 15 + 2*3_400 + 6*14_000},
		},
		{"two slices, one chip of each", v5e.Axis(256, 2), collective.AllReduce, gb, collective.Cost{Steps: 2, Sent: gb, Network: gb, Ns: 320_000_000 + 2*14_000}},
		{"no network", cluster(t, "h100-pcie", 16).Axis(1, 16), collective.AllReduce, gb, collective.Cost{Steps: 16, Sent: 1_875_000_000, Network: 125_000_000, Ns: collective.Unknown}},
	} {
		if got := collective.Over(c.path, c.op, c.bytes); got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.what, got, c.want)
		}
	}
}

// Costs grow with bytes, an all-reduce costs a reduce-scatter and an all-gather,
// and no time is below the bytes over the fastest link.
func TestOverIsConsistent(t *testing.T) {
	random.Rounds(t, 300, 20_000, func(t *testing.T, r *rand.Rand) {
		kinds := hardware.All()
		k := kinds[r.IntN(len(kinds))]
		perNode := random.One(r, 1, 2, 4, 8, 16)
		devices := perNode * random.One(r, 1, 2, 3, 4)
		c, err := k.Cluster(devices, perNode)
		if err != nil {
			t.Fatal(err)
		}
		size := random.One(r, divisors(devices)...)
		path := c.Axis(random.One(r, divisors(devices/size)...), size)
		small, large := r.Int64N(1<<40), r.Int64N(collective.MaxBytes)
		if small > large {
			small, large = large, small
		}
		for _, op := range collective.Ops() {
			a, b := collective.Over(path, op, small), collective.Over(path, op, large)
			if a.Sent > b.Sent || a.Network > b.Network || a.Ns > b.Ns || a.Network > a.Sent || b.Network > b.Sent {
				t.Errorf("%s of %s over %+v: %d bytes %+v, %d bytes %+v", op, k.Name, path, small, a, large, b)
			}
			if fastest := path.Node.BytesPerSecond + path.Network.BytesPerSecond; b.Ns != collective.Unknown && b.Ns < 1<<53 && float64(b.Ns)+1 < float64(b.Sent)*1e9/float64(fastest) {
				t.Errorf("%s of %s over %+v: %d bytes in %d ns", op, k.Name, path, b.Sent, b.Ns)
			}
		}
		both := collective.Over(path, collective.AllReduce, large)
		scatter, gather := collective.Over(path, collective.ReduceScatter, large), collective.Over(path, collective.AllGather, large)
		if near := both.Ns - scatter.Ns - gather.Ns; both.Ns < 1<<53 && both.Ns != collective.Unknown && (near < -4 || near > 4) || both.Steps != scatter.Steps+gather.Steps {
			t.Errorf("%s over %+v: all-reduce %+v, reduce-scatter %+v, all-gather %+v", k.Name, path, both, scatter, gather)
		}
	})
}

// A bandwidth of a few bytes per second leaves less than one for some rings.
func TestSlowestTorus(t *testing.T) {
	c := hardware.Cluster{Devices: 64, PerNode: 64, Topology: hardware.Torus2, Node: hardware.Link{BytesPerSecond: 5}}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	for _, path := range c.Axes([]int{16, 4}) {
		for _, op := range collective.Ops() {
			for _, bytes := range []int64{0, 1, collective.MaxBytes} {
				got := collective.Over(path, op, bytes)
				if got.Ns < collective.Unknown || got.Ns > 1<<53 {
					t.Errorf("%s of %d bytes over %+v: %+v", op, bytes, path, got)
				}
			}
		}
	}
}

func divisors(n int) []int {
	var list []int
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

func BenchmarkOver(b *testing.B) {
	k, err := hardware.Find("h100-80")
	if err != nil {
		b.Fatal(err)
	}
	c, err := k.Cluster(1<<20, 0)
	if err != nil {
		b.Fatal(err)
	}
	path := c.Axis(1, 1<<20)
	for b.Loop() {
		collective.Over(path, collective.AllReduce, 1<<30)
	}
}
