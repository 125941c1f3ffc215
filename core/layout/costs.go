package layout

import (
	"encoding/binary"
	"math/bits"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// slot is the unit of memory of a block. Every block begins aligned to it, so
// that a device can alias the block.
const slot = 64

// maxWalks bounds the visits of devices to compute costs. At the bound, they take a
// few seconds.
const maxWalks = 1 << 28

// Totals has the sums of a layout. A number is -1 if it is not known, because
// an array is broken or the dataset is not described.
type Totals struct {
	BatchBytes        int64 // bytes of one global batch as delivered, with mask and extras
	ReadBytes         int64 // gathered by all processes per step; more than BatchBytes if processes overlap
	DeviceBytes       int64 // on the fullest device: one batch, with LoadReshard before and after, and the arrays without batch dimensions
	HostBytes         int64 // in the fullest process: blocks rounded up to 64 bytes, times prefetch + 1; with LoadGlobal one whole batch more
	InterconnectBytes int64 // with LoadReshard, per step: the least that all devices get from other devices; else 0
	NetworkBytes      int64 // part of InterconnectBytes: what all processes get from other processes, each byte once
	StepsPerEpoch     int64
	RemainderRecords  int64 // that do not fill the last step
}

// Known reports whether the sums over processes and devices are known.
func (t Totals) Known() bool { return t.ReadBytes >= 0 }

// ProcessCosts has the costs of one process per step. A number of bytes is -1
// if it is not known.
type ProcessCosts struct {
	ReadBytes         int64    // gathered
	HostBytes         int64    // memory for all batches
	InterconnectBytes int64    // with LoadReshard: the least that its devices get from other devices
	NetworkBytes      int64    // part of InterconnectBytes: bytes from other processes, each once
	Group             int      // processes of one group read the same rows of the dataset's arrays; -1 if the rows are not known
	Rows              [][2]int // these rows: sorted, merged [start, stop) ranges
}

// ProcessCosts returns the costs of the n-th process of the mesh, in ascending
// order.
func (l *Layout) ProcessCosts(n int) ProcessCosts {
	c := &l.costs
	p := ProcessCosts{ReadBytes: -1, HostBytes: -1, InterconnectBytes: -1, NetworkBytes: -1, Group: -1}
	if c.known {
		p.ReadBytes, p.HostBytes, p.InterconnectBytes, p.NetworkBytes = c.processes[n], c.host[n], 0, 0
	}
	if c.known && c.traffic != nil {
		p.InterconnectBytes, p.NetworkBytes = c.traffic[n].interconnect, c.traffic[n].network
	}
	if c.rows.known {
		p.Group = int(c.rows.group[n])
		p.Rows = c.rows.ranges[p.Group]
	}
	return p
}

// costs are bytes per step.
type costs struct {
	totals    Totals
	known     bool      // no array is broken
	processes []int64   // bytes that the n-th process of the mesh gathers
	host      []int64   // memory that it needs
	traffic   []traffic // bytes that it gets from others; nil except with LoadReshard
	least     int64     // bytes that all processes would gather with LoadProcess
	blocks    int64     // blocks of the process that has most
	walks     int64     // devices to visit: all devices of the mesh, for every different tiling
	rows      rowTable
}

// traffic has the bytes that the devices of a process get at every step.
type traffic struct{ interconnect, network int64 }

// Totals returns the sums.
func (l *Layout) Totals() Totals { return l.costs.totals }

// count works out the costs.
func (l *Layout) count() costs {
	n := len(l.processes)
	c := costs{known: true, processes: make([]int64, n), host: make([]int64, n)}
	c.totals.StepsPerEpoch, c.totals.RemainderRecords = l.steps()
	for i, a := range l.arrays {
		c.known = c.known && a.Delivered != nil
		if a.Kind != Static {
			c.totals.BatchBytes = plus(c.totals.BatchBytes, arrayBytes(l.arrays[i]), 1)
		}
	}
	parts := l.alike(func(i int) string { return tilingKey(l.delivered[i]) })
	c.walks = int64(len(parts))*int64(l.mesh.Size()) + l.trafficWalks()
	if !c.known || c.walks > maxWalks {
		c.known = false
		t := &c.totals
		t.ReadBytes, t.DeviceBytes, t.HostBytes, t.InterconnectBytes, t.NetworkBytes = -1, -1, -1, -1, -1
		return c
	}
	l.countBlocks(&c, parts)
	l.sumUp(&c)
	if l.Loading() == LoadReshard {
		l.countTraffic(&c)
	}
	c.rows = l.tableRows()
	return c
}

// countBlocks counts the bytes of one batch: how many each process holds, how
// many it gathers (except with LoadGlobal), and how many all processes would
// gather with LoadProcess.
func (l *Layout) countBlocks(c *costs, groups [][]int) {
	blocks := make([]int64, len(c.processes))
	for _, alike := range groups {
		var bytes, rounded int64 // bytes of one part of every array together
		for _, i := range alike {
			b := l.partBytes(i)
			bytes, rounded = plus(bytes, b, 1), plus(rounded, slots(b), 1)
		}
		for n, k := range l.distinct(l.delivered[alike[0]]) {
			c.least = plus(c.least, bytes, int64(k))
			if l.Loading() == LoadDevice {
				k = int32(len(l.mesh.Owned(n)))
			}
			c.processes[n] = plus(c.processes[n], bytes, int64(k))
			c.host[n] = plus(c.host[n], rounded, int64(k))
			blocks[n] += int64(k) * int64(len(alike))
			c.blocks = max(c.blocks, blocks[n])
		}
	}
}

// sumUp computes the totals.
func (l *Layout) sumUp(c *costs) {
	var whole int64 // with LoadGlobal: memory for the batch before a part of it is kept
	for i, a := range l.arrays {
		c.totals.DeviceBytes = plus(c.totals.DeviceBytes, shardBytes(a, l.tilings[i]), 1)
		switch {
		case a.Kind == Static:
		case l.Loading() == LoadGlobal:
			whole = plus(whole, slots(arrayBytes(a)), 1)
		case l.Loading() == LoadReshard:
			c.totals.DeviceBytes = plus(c.totals.DeviceBytes, l.partBytes(i), 1)
		}
	}
	for n := range c.host {
		if l.Loading() == LoadGlobal {
			c.processes[n] = c.totals.BatchBytes
		}
		c.host[n] = plus(whole, c.host[n], int64(l.Prefetch())+1)
		c.totals.ReadBytes = plus(c.totals.ReadBytes, c.processes[n], 1)
		c.totals.HostBytes = max(c.totals.HostBytes, c.host[n])
	}
}

// alike groups the arrays that are read by a key of their tilings. A large mesh
// is then walked once per group.
func (l *Layout) alike(key func(i int) string) [][]int {
	return l.Grouped(func(i int) (string, bool) {
		if a := l.arrays[i]; a.Kind == Static || a.Delivered == nil {
			return "", false
		}
		return key(i), true
	})
}

// distinct counts the distinct tiles that every process holds.
func (l *Layout) distinct(t sharding.Tiling) []int32 {
	ids, seen := t.All(), make([]int32, t.Count())
	counts := make([]int32, len(l.processes))
	for n := range counts {
		for _, position := range l.mesh.Owned(n) {
			if tile := ids[position]; seen[tile] != int32(n)+1 {
				seen[tile] = int32(n) + 1
				counts[n]++
			}
		}
	}
	return counts
}

// tilingKey is equal for two tilings of one mesh if they are the same.
func tilingKey(t sharding.Tiling) string {
	var key []byte
	for _, w := range t.Weights() {
		key = binary.AppendUvarint(key, uint64(w))
	}
	return string(key)
}

// shardBytes returns the size of one part of an array.
func shardBytes(a Array, t sharding.Tiling) int64 {
	n := int64(a.Type.Size())
	for _, size := range t.Index(0).Shape() {
		n *= int64(size)
	}
	return n
}

// partBytes returns the size of one part of an array as it is delivered.
func (l *Layout) partBytes(i int) int64 { return shardBytes(l.arrays[i], l.delivered[i]) }

// slots rounds a size up to whole slots.
func slots(bytes int64) int64 { return (bytes + slot - 1) / slot * slot }

// steps returns the steps of an epoch, and the records that do not fill the
// last one.
func (l *Layout) steps() (steps, remainder int64) {
	size := l.BatchSize()
	if l.doc.Dataset == nil || size == 0 {
		return -1, -1
	}
	steps, remainder = l.doc.Dataset.Records/size, l.doc.Dataset.Records%size
	if remainder > 0 && l.Remainder() == Pad {
		steps++
	}
	return steps, remainder
}

// arrayBytes returns the size of the whole array.
func arrayBytes(a Array) int64 {
	n := int64(a.Type.Size())
	for _, size := range a.Shape {
		n = plus(0, n, int64(size))
	}
	return n
}

// plus returns sum + size × times. If the result exceeds MaxInteger, it returns
// MaxInteger + 1, which check reports. No argument may be negative.
func plus(sum, size, times int64) int64 {
	hi, lo := bits.Mul64(uint64(size), uint64(times))
	if hi != 0 || lo > MaxInteger || uint64(sum)+lo > MaxInteger {
		return MaxInteger + 1
	}
	return sum + int64(lo)
}
