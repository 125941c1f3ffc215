package hardware_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

func TestClusterErrors(t *testing.T) {
	for _, c := range []struct {
		cluster hardware.Cluster
		want    string
		path    string
	}{
		{hardware.Cluster{PerNode: 1}, "hardware: a cluster needs at least 1 device, but there are 0", "/cluster/devices"},
		{hardware.Cluster{Devices: 1<<20 + 1, PerNode: 1}, "hardware: there are 1048577 devices, but a mesh may have 1048576", "/cluster/devices"},
		{hardware.Cluster{Devices: 8}, "hardware: a node needs at least 1 device, but there are 0", "/cluster/per_node"},
		{hardware.Cluster{Devices: 4, PerNode: 8}, "hardware: a node of 8 devices is larger than the cluster of 4; use per_node 4", "/cluster/per_node"},
		{hardware.Cluster{Devices: 12, PerNode: 8, Topology: hardware.Torus3}, "hardware: 12 devices do not fill slices of 8: 12 % 8 = 4; use 8 or 16 devices, or another per_node", "/cluster/devices"},
		{hardware.Cluster{Devices: 12, PerNode: 8}, "hardware: 12 devices do not fill nodes of 8: 12 % 8 = 4; use 8 or 16 devices, or another per_node", "/cluster/devices"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Topology: "ring"}, `hardware: there is no topology "ring"; use one of "none", "switch", "pcie", "torus2", "torus3"`, "/cluster/topology"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Memory: -1}, "hardware: memory_bytes is -1, but must be from 0 (unknown) to 9007199254740992", "/cluster/memory_bytes"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Node: hardware.Link{LatencyNs: math.MaxInt64}}, "hardware: node_latency_ns is 9223372036854775807, but must be from 0 (unknown) to 1000000000", "/cluster/node_latency_ns"},
		{hardware.Cluster{Devices: 8, PerNode: 8, FLOPs: map[hardware.Precision]int64{"bf16": -1}}, "hardware: bf16 operations per second are -1, but must be from 0 (unknown) to 2^62", "/cluster/flops_per_second"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Topology: hardware.Torus2, Torus: []int{2, 3}}, "hardware: the torus has 6 devices, but a slice has 8", "/cluster/torus"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Topology: hardware.Torus2, Torus: []int{8}}, `hardware: the torus has 1 dimensions, but topology "torus2" has 2`, "/cluster/torus"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Topology: hardware.Torus2, Torus: []int{-2, -4}}, "hardware: a dimension of the torus has -2 devices, but must have 1 to 8", "/cluster/torus"},
		{hardware.Cluster{Devices: 8, PerNode: 8, Torus: []int{8}}, `hardware: the torus has 1 dimensions, but topology "switch" has 0`, "/cluster/torus"},
	} {
		err := c.cluster.Complete()
		var e *status.Error
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		} else if e = err.(*status.Error); e.Code != status.InvalidArgument || e.Attr("path") != c.path {
			t.Errorf("%s: code %v, path %v, want %s", c.want, e.Code, e.Attr("path"), c.path)
		}
	}
}

// counts looks at every group of an axis. It returns the fewest devices of a group in one
// of its nodes, and the most nodes of a group.
func counts(devices, perNode, stride, size int) (inner, nodes int) {
	inner = size
	for block := 0; block < devices; block += stride * size {
		for offset := range stride {
			members := map[int]int{}
			for i := range size {
				members[(block+offset+i*stride)/perNode]++
			}
			for _, n := range members {
				inner = min(inner, n)
			}
			nodes = max(nodes, len(members))
		}
	}
	return inner, nodes
}

func TestAxisCountsMembersOfNodes(t *testing.T) {
	random.Rounds(t, 400, 20_000, func(t *testing.T, r *rand.Rand) {
		factor := func() int { return random.One(r, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12) }
		stride, size, outer := factor(), factor(), factor()
		devices := stride * size * outer
		perNode := random.One(r, divisors(devices)...)
		c := hardware.Cluster{Devices: devices, PerNode: perNode}
		if err := c.Complete(); err != nil {
			t.Fatal(err)
		}
		p := c.Axis(stride, size)
		inner, nodes := counts(devices, perNode, stride, size)
		if p.Size != size || p.Inner != inner || p.Nodes != nodes {
			t.Errorf("%d devices in nodes of %d, axis of %d with stride %d: got %d of a node and %d nodes, want %d and %d", devices, perNode, size, stride, p.Inner, p.Nodes, inner, nodes)
		}
	})
}

// Devices of a node without links among them use the network.
func TestUnconnectedDevices(t *testing.T) {
	c := hardware.Cluster{Devices: 16, PerNode: 8, Topology: hardware.Unconnected}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]hardware.Tier{1: hardware.Nowhere, 4: hardware.AcrossNodes, 16: hardware.AcrossNodes} {
		if p := c.Axis(1, size); p.Tier() != want || p.Inner != 1 || p.Nodes != size {
			t.Errorf("%d devices: %+v, want tier %s", size, p, want)
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

func ExampleCluster_Axis() {
	kind, err := hardware.Find("h100-80")
	if err != nil {
		panic(err)
	}
	c, err := kind.Cluster(32, 8)
	if err != nil {
		panic(err)
	}
	// A mesh (data 2, fsdp 4, tensor 4): neighbors of data are 16 devices apart.
	for _, axis := range []struct {
		name         string
		stride, size int
	}{{"tensor", 1, 4}, {"fsdp", 4, 4}, {"data", 16, 2}} {
		p := c.Axis(axis.stride, axis.size)
		fmt.Println(axis.name, p.Tier(), p.Inner, "of a node,", p.Nodes, "nodes")
	}
	// Output:
	// tensor node 4 of a node, 1 nodes
	// fsdp mixed 2 of a node, 2 nodes
	// data network 1 of a node, 2 nodes
}
