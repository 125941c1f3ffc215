package hardware

// Tier says which links the devices of a group need to reach each other.
type Tier string

// The tiers.
const (
	Nowhere     Tier = "none"    // a group of one device
	InNode      Tier = "node"    // all devices of the group are in one node
	AcrossNodes Tier = "network" // every device of the group is in a different node
	Mixed       Tier = "mixed"   // several devices of a node, and several nodes
)

// Path has the links between the devices of a group. The devices of a group differ in their
// coordinate of one mesh axis only. All groups of the axis communicate at the same time. If
// they cross different links, the path describes the slowest group.
type Path struct {
	Size    int    // devices of a group
	Inner   int    // the fewest devices of a group in one of its nodes
	Nodes   int    // the most nodes of a group
	Node    Link   // links of a device to the devices of its node; in a torus, the sum over Rings
	Network Link   // link of a device to other nodes
	Rings   []Ring // in a torus: the group's part of each dimension that it crosses; otherwise nil
}

// Ring is the part of a dimension of a torus that a group has. A group with
// several rings has every combination of their positions.
type Ring struct {
	Size           int   // devices
	Stride         int   // hops between neighbors; so many groups share every link
	Wrap           bool  // the last device is a neighbor of the first one
	BytesPerSecond int64 // bandwidth of a device in the ring: both directions if it wraps, else one; divided by Stride

	complete bool // a whole dimension
}

// Tier returns which links the group needs.
func (p Path) Tier() Tier {
	switch {
	case p.Size <= 1:
		return Nowhere
	case p.Nodes == 1:
		return InNode
	case p.Inner == 1:
		return AcrossNodes
	}
	return Mixed
}

// Axis returns the path of a mesh axis with neighbors stride devices apart. The product of
// stride and size must divide the devices of the cluster.
func (c *Cluster) Axis(stride, size int) Path {
	return c.Axes([]int{c.Devices / (stride * size), size, stride})[1]
}

// Axes returns the paths of all axes of a mesh, outermost first. Devices are in
// row-major order over the axes, and nodes have consecutive devices.
//
// In a torus, Axes chooses the order of the dimensions in which the most axes have whole
// dimensions. If several orders have equally many, it chooses the one in which the
// innermost axis has the fastest links. If no order fits, an axis gets a single link. The
// product of the sizes must be the number of devices.
func (c *Cluster) Axes(sizes []int) []Path {
	if c.Topology.Dimensions() > 0 {
		return c.torusAxes(sizes)
	}
	paths := make([]Path, len(sizes))
	stride := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		paths[i] = c.switched(stride, sizes[i])
		stride *= sizes[i]
	}
	return paths
}

// switched returns the path of an axis in a cluster without a torus.
func (c *Cluster) switched(stride, size int) Path {
	p := Path{Size: size, Inner: size, Nodes: 1, Node: c.Node, Network: c.Network}
	span := stride * size
	switch {
	case c.Topology == Unconnected || stride >= c.PerNode:
		p.Inner, p.Nodes = 1, size
	case size == 1 || c.PerNode%span == 0:
	default:
		// The groups begin at every multiple of span, and at the stride-1
		// devices after it. Relative to a node, they begin at the multiples of
		// g. A group that begins in the last g devices of a node has the fewest
		// devices there.
		g := gcd(span, c.PerNode)
		p.Inner = max(1, g/stride)
		last := c.PerNode - g + stride - 1 // the latest start in a node that leaves g-stride+1 devices in it
		if stride > g {
			last = c.PerNode - 1
		}
		p.Nodes = min(size, (last+stride*(size-1))/c.PerNode+1)
	}
	return p
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
