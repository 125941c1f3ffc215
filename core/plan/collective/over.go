package collective

import (
	"math/bits"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

// Over returns the cost of an operation over the links of a path, for an array
// of the given bytes, which must be 0 to MaxBytes.
//
// Inside a node or between nodes, that is the cost of the usual algorithm over
// the link.
//
// A group with k devices in each of several nodes works in two stages. In one,
// the k devices of a node are a group of their own. In the other, every device
// exchanges S/k of the array with one device in each other node, over a network
// link of its own. The stages overlap chunk by chunk. So the time is the sum of
// both latencies, plus the larger of the two times for the bytes:
//
//	in the node      S(k-1)/k bytes
//	between nodes    S(n-k)/n / k bytes
//
// An all-reduce has twice as much. In an all-to-all every device sends S(k-1)/n in its node
// and S(n-k)/n to others. A permute has messages between nodes, so its time is the time on
// the network.
//
// In a torus, the array is cut into as many parts as the group has rings. Every
// part goes through the rings in another order, which uses all links in both
// directions: S(n-1)/n bytes over the sum of the rings' bandwidths. In an
// all-to-all, a ring of a devices carries S·⌊a²/4⌋/a bytes per device, because a
// message needs as many links as hops; the ring that needs longest counts.
func Over(path hardware.Path, op Op, bytes int64) Cost {
	switch path.Tier() {
	case hardware.Nowhere:
		return Cost{}
	case hardware.AcrossNodes:
		c := cost(op, usual(op), path.Size, bytes, path.Network)
		c.Network = c.Sent
		return c
	case hardware.InNode:
		return inside(path, op, bytes)
	}
	return mixed(path, op, bytes)
}

// inside returns the cost of an operation on devices in one node.
func inside(path hardware.Path, op Op, bytes int64) Cost {
	c := cost(op, usual(op), path.Size, bytes, path.Node)
	if path.Rings == nil {
		return c
	}
	c.Steps = stages(op) * hops(path.Rings)
	switch op {
	case Permute:
		next := path.Rings[0]
		c.Steps = next.Stride
		c.Ns = duration(c.Steps, float64(bytes), oneWay(next, path.Node))
	case AllToAll:
		c.Ns = duration(c.Steps, 0, path.Node)
		if c.Ns != Unknown {
			c.Ns = min(maxNs, c.Ns+exchanged(path, bytes))
		}
	default:
		c.Ns = duration(c.Steps, float64(int64(stages(op))*part(bytes, path.Size)), path.Node)
	}
	return c
}

// stages returns how often an operation passes the array through the group: an
// all-reduce is a reduce-scatter and an all-gather, and a broadcast distributes
// chunks before they are gathered.
func stages(op Op) int {
	if op == AllReduce || op == Broadcast {
		return 2
	}
	return 1
}

// hops returns the number of links that the last chunk passes.
func hops(rings []hardware.Ring) int {
	n := 0
	for _, r := range rings {
		if r.Wrap {
			n += r.Size / 2 * r.Stride
		} else {
			n += (r.Size - 1) * r.Stride
		}
	}
	return n
}

// oneWay returns the link from a device of a ring to the next one.
func oneWay(r hardware.Ring, node hardware.Link) hardware.Link {
	link := hardware.Link{BytesPerSecond: r.BytesPerSecond, LatencyNs: node.LatencyNs}
	if r.Wrap {
		link.BytesPerSecond /= 2
	}
	return link
}

// exchanged returns the time of the bytes of an all-to-all in the rings. Between
// each two of the a positions of a ring, 1/a of the array of a device moves. The
// sum of the hops to all positions is ⌊a²/4⌋. In a chain, that many messages
// cross the link in the middle.
func exchanged(path hardware.Path, bytes int64) int64 {
	ns := int64(0)
	for _, r := range path.Rings {
		load := float64(bytes) * float64(r.Size*r.Size/4) / float64(r.Size)
		ns = max(ns, nanoseconds(load, hardware.Link{BytesPerSecond: r.BytesPerSecond}))
	}
	return ns
}

// mixed returns the cost of an operation of several devices of several nodes.
func mixed(path hardware.Path, op Op, bytes int64) Cost {
	n, k, times := path.Size, path.Inner, stages(op)
	if op == Permute {
		return Cost{Steps: 1, Sent: bytes, Network: bytes, Ns: duration(1, float64(bytes), path.Network)}
	}
	c := cost(op, usual(op), n, bytes, path.Network)
	inner, outer := k-1, path.Nodes-1
	c.Network = share(int64(times)*bytes, n-k, n*k)
	if op == AllToAll {
		outer = n - k
		c.Network = share(bytes, n-k, n)
	}
	if path.Rings != nil {
		inner = hops(path.Rings)
	}
	c.Steps = times * (inner + outer)
	near, far := duration(times*inner, 0, path.Node), duration(times*outer, 0, path.Network)
	if near == Unknown || far == Unknown {
		c.Ns = Unknown
		return c
	}
	c.Ns = min(maxNs, near+far+max(inNode(path, op, bytes, c), nanoseconds(float64(c.Network), path.Network)))
	return c
}

// inNode returns the time of the bytes that stay in the node.
func inNode(path hardware.Path, op Op, bytes int64, c Cost) int64 {
	if op == AllToAll && path.Rings != nil {
		return exchanged(path, share(bytes, path.Inner, path.Size))
	}
	all := part(int64(stages(op))*bytes, path.Size)
	return nanoseconds(float64(all-c.Network), path.Node)
}

// share returns s·a/b, rounded up. The product of a and b is below 2^60.
func share(s int64, a, b int) int64 {
	high, low := bits.Mul64(uint64(s), uint64(a))
	low, carry := bits.Add64(low, uint64(b-1), 0)
	quotient, _ := bits.Div64(high+carry, low, uint64(b))
	return int64(quotient)
}
