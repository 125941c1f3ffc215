package collective_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

// TestPublishedTimes compares times with the results of Austin et al. in "How
// to Scale Your Model", 2025: parts 3 (TPUs) and 12 (GPUs). They leave out
// latencies, and for TPUs the factor (n-1)/n and the share of a whole link that
// data sheets have above 4.5e10 bytes per second.
func TestPublishedTimes(t *testing.T) {
	const mib = 1 << 20
	h100 := func(devices int) *hardware.Cluster {
		c := cluster(t, "h100-80", devices)
		c.Node.LatencyNs, c.Network.LatencyNs = 0, 0
		return c
	}
	tpu := func(kind string, devices int, links, latency int64) *hardware.Cluster {
		c := cluster(t, kind, devices)
		c.Node = hardware.Link{BytesPerSecond: links * 45_000_000_000, LatencyNs: latency}
		return c
	}
	v4, v5e := tpu("tpu-v4", 64, 6, 0), tpu("tpu-v5e", 32, 4, 0)
	for _, c := range []struct {
		what  string
		path  hardware.Path
		op    collective.Op
		bytes int64
		want  float64 // microseconds
	}{
		{"part 12, pop quiz 1: bf16[1024, 16384] in a node, 65 µs", h100(8).Axis(1, 8), collective.AllGather, 32 * mib, 65.2},
		{"part 12, quiz 2, question 3: bf16[4096, 65536], 1.04 ms", h100(8).Axis(1, 8), collective.AllGather, 512 * mib, 1044},
		{"part 12: 413 GB/s over 32 nodes", h100(256).Axis(1, 256), collective.ReduceScatter, 413e9, 1e6},
		{"part 12, quiz 4, question 5: 514 GB/s over 2 nodes, as in a node", h100(16).Axis(1, 16), collective.AllGather, 514e9, 1e6},
		{"part 12, pop quiz 3: inner axis of 4, 2DF·31/32 at 400 GB/s", h100(256).Axis(4, 64), collective.AllGather, 8192 * 32768 * 2 / 4, 1300},
		{"part 12, pop quiz 3: inner axis of 32, 2DF/32 at 50 GB/s, times 7/8", h100(256).Axis(32, 8), collective.AllGather, 8192 * 32768 * 2 / 32, 336 * 7 / 8.},
		{"part 12: all-to-all of B over 4 nodes, B·3/16 at 400 GB/s", h100(32).Axis(1, 32), collective.AllToAll, 32e9 / 32, 32e9 * 3 / 16 / 400e9 * 1e6},
		{"part 3, question 2: over one axis of 4×4×4, 23 µs, times 3/4", v4.Axis(1, 4), collective.AllGather, 2 * mib, 23.3 * 3 / 4},
		{"part 3, question 2: over two axes, 46 µs, times 15/16", v4.Axis(1, 16), collective.AllGather, 8 * mib, 46.6 * 15 / 16},
		{"part 3, question 3: 256 bytes, 2 hops of 1 µs", tpu("tpu-v4", 64, 6, 1000).Axis(1, 4), collective.AllGather, 256, 2},
		{"part 3, pop quiz 2: bf16[2048, 8192] without a ring, 560 µs; measured: 680 µs", v5e.Axis(1, 4), collective.AllGather, 32 * mib, 560},
		{"part 3: all-to-all, 1/4 of V at both directions", v4.Axis(1, 4), collective.AllToAll, 32 * mib / 4, 32 * mib / 4 / 9e10 * 1e6},
	} {
		ns := float64(collective.Over(c.path, c.op, c.bytes).Ns)
		if off := ns/1000/c.want - 1; off < -0.005 || off > 0.005 {
			t.Errorf("%s: got %g µs, want %g", c.what, ns/1000, c.want)
		}
	}
}
