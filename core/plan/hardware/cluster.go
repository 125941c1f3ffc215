package hardware

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Link is the connection of one device in one direction. A zero is a number
// that is not known.
type Link struct {
	BytesPerSecond int64
	LatencyNs      int64 // latency of one step of a collective
}

// Known reports whether the bandwidth is known.
func (l Link) Known() bool { return l.BytesPerSecond > 0 }

// Latencies of one step of a collective. They are conventions: the time of
// small messages depends on software more than on the link.
//
// GPUs: NCCL's model of its ring with the protocol for large messages (hwLat in
// src/graph/tuning.cc, NCCL 2.18): 3.4 µs over NVLink, 5.7 µs over PCIe, 14 µs over the
// network. TPUs: about 1 µs for a hop between neighbors (Austin et al., "How to Scale Your
// Model", part 3, 2025). Their network between slices is assumed as slow as the network of
// GPUs.
const (
	SwitchLatencyNs  = 3_400
	PCIeLatencyNs    = 5_700
	NetworkLatencyNs = 14_000
	TorusLatencyNs   = 1_000
)

// Cluster is a number of equal devices in nodes. Devices 0…PerNode-1 are in
// node 0, and so on. A zero in its numbers is a number that is not known.
type Cluster struct {
	Kind     string // name of the kind, or empty
	Devices  int
	PerNode  int                 // devices of a node, or of a slice of TPUs
	Memory   int64               // bytes of a device
	HBM      int64               // bytes per second between a device and its memory
	FLOPs    map[Precision]int64 // operations per second of a device
	Node     Link                // to the devices of the same node, over all links of the device
	Network  Link                // to other nodes, the share of one device
	Topology Topology
	Torus    []int // sizes of the dimensions of a slice, ascending; nil unless the topology is a torus
	Host     int   // devices of one host of a slice; 0 unless the topology is a torus
	Wrap     int   // see [Kind]; 0 if no dimension is a ring
}

// Cluster returns the cluster of a number of devices of the kind. If perNode is
// 0, nodes have the usual number of devices, or all devices if there are fewer.
func (k Kind) Cluster(devices, perNode int) (*Cluster, error) {
	if perNode == 0 {
		perNode = min(k.PerNode, devices)
	}
	c := &Cluster{
		Kind: k.Name, Devices: devices, PerNode: perNode,
		Memory: k.Memory.Value, HBM: k.HBM.Value, FLOPs: map[Precision]int64{},
		Node: Link{BytesPerSecond: k.Node.Value}, Network: Link{BytesPerSecond: k.Network.Value},
		Topology: k.Topology, Host: k.Host, Wrap: k.Wrap,
	}
	for p, cell := range k.FLOPs {
		c.FLOPs[p] = cell.Value
	}
	return c, c.Complete()
}

// Complete checks the cluster, and fills in what follows from the rest: the
// latencies of links with a bandwidth, and the dimensions of a torus. A latency
// of 0 is replaced, so set it afterward to have none. The attribute "path" of
// the error is a JSON Pointer into a strategy document.
func (c *Cluster) Complete() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Node.Known() && c.Node.LatencyNs == 0 {
		c.Node.LatencyNs = c.Topology.latency()
	}
	if c.Network.Known() && c.Network.LatencyNs == 0 {
		c.Network.LatencyNs = NetworkLatencyNs
	}
	d := c.Topology.Dimensions()
	if d > 0 && c.Torus == nil {
		c.Torus = cuboid(c.PerNode, d)
	}
	switch {
	case d == 0:
		c.Host = 0
	case c.Host == 0:
		c.Host = 4 // as for every TPU up to v6e
	}
	return c.checkTorus()
}

func (t Topology) latency() int64 {
	switch t {
	case PCIe:
		return PCIeLatencyNs
	case Torus2, Torus3:
		return TorusLatencyNs
	}
	return SwitchLatencyNs
}

func (c *Cluster) check() error {
	if c.Topology == "" {
		c.Topology = Switch
	}
	if !slices.Contains(topologies, c.Topology) {
		return fail("/cluster/topology", "there is no topology %q", string(c.Topology)).
			WithHint("%s", wording.Suggest(string(c.Topology), topologies))
	}
	switch {
	case c.Devices < 1:
		return fail("/cluster/devices", "a cluster needs at least 1 device, but there are %d", c.Devices)
	case c.Devices > mesh.MaxDevices:
		return fail("/cluster/devices", "there are %d devices, but a mesh may have %d", c.Devices, mesh.MaxDevices)
	case c.PerNode < 1:
		return fail("/cluster/per_node", "a node needs at least 1 device, but there are %d", c.PerNode)
	case c.PerNode > c.Devices:
		return fail("/cluster/per_node", "a node of %d devices is larger than the cluster of %d", c.PerNode, c.Devices).
			WithHint("use per_node %d", c.Devices)
	case c.Devices%c.PerNode != 0:
		return c.partialNode()
	}
	return c.checkNumbers()
}

func (c *Cluster) partialNode() error {
	less := c.Devices / c.PerNode * c.PerNode
	groups := "nodes"
	if c.Topology.Dimensions() > 0 {
		groups = "slices"
	}
	return fail("/cluster/devices", "%d devices do not fill %s of %d: %d %% %d = %d", c.Devices, groups, c.PerNode, c.Devices, c.PerNode, c.Devices%c.PerNode).
		WithHint("use %d or %d devices, or another per_node", less, less+c.PerNode)
}

// maxNumber is the largest number that JSON holds exactly.
const maxNumber = 1 << 53

func (c *Cluster) checkNumbers() error {
	for _, n := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"memory_bytes", c.Memory, maxNumber},
		{"hbm_bytes_per_second", c.HBM, maxNumber},
		{"node_bytes_per_second", c.Node.BytesPerSecond, maxNumber},
		{"network_bytes_per_second", c.Network.BytesPerSecond, maxNumber},
		{"node_latency_ns", c.Node.LatencyNs, 1_000_000_000},
		{"network_latency_ns", c.Network.LatencyNs, 1_000_000_000},
	} {
		if n.value < 0 || n.value > n.most {
			return fail("/cluster/"+n.name, "%s is %d, but must be from 0 (unknown) to %d", n.name, n.value, n.most)
		}
	}
	for p, flops := range c.FLOPs {
		if flops < 0 || flops > 1<<62 {
			return fail("/cluster/flops_per_second", "%s operations per second are %d, but must be from 0 (unknown) to 2^62", p, flops)
		}
	}
	return nil
}

func (c *Cluster) checkTorus() error {
	d := c.Topology.Dimensions()
	if len(c.Torus) != d {
		return fail("/cluster/torus", "the torus has %d dimensions, but topology %q has %d", len(c.Torus), string(c.Topology), d)
	}
	if d == 0 {
		return nil
	}
	product := 1
	for _, size := range c.Torus {
		if size < 1 || size > c.PerNode {
			return fail("/cluster/torus", "a dimension of the torus has %d devices, but must have 1 to %d", size, c.PerNode)
		}
		product *= size
	}
	if product != c.PerNode {
		return fail("/cluster/torus", "the torus has %d devices, but a slice has %d", product, c.PerNode)
	}
	return nil
}

// Nodes returns the number of nodes.
func (c *Cluster) Nodes() int { return c.Devices / c.PerNode }

// cuboid returns the sizes of the dimensions of a slice, ascending. It chooses the shape
// with the smallest maximum. Google's standard slices have this shape, such as 4×8×8 for
// 256 chips.
func cuboid(devices, dimensions int) []int {
	if dimensions == 1 {
		return []int{devices}
	}
	var best []int
	for first := 1; power(first, dimensions) <= devices; first++ {
		if devices%first != 0 {
			continue
		}
		rest := cuboid(devices/first, dimensions-1)
		if rest[0] >= first && (best == nil || rest[len(rest)-1] <= best[len(best)-1]) {
			best = append([]int{first}, rest...)
		}
	}
	return best
}

func power(base, exponent int) int {
	n := 1
	for range exponent {
		n *= base
	}
	return n
}

func fail(path, format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "hardware", format, args...).With("path", path)
}
