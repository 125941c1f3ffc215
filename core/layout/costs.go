package layout

import (
	"encoding/binary"
	"math/bits"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// slot is what every block's memory is rounded up to, so that each begins
// aligned and a device can alias it.
const slot = 64

// maxWalks bounds the devices that are visited to work out costs, a few
// seconds' worth.
const maxWalks = 1 << 28

// Totals sums a layout up. A number that cannot be known, since an array is
// broken or the dataset is not described, is -1.
type Totals struct {
	BatchBytes        int64 // of one global batch as delivered, mask and extras included
	ReadBytes         int64 // gathered by all processes per step; more than BatchBytes where processes overlap
	DeviceBytes       int64 // of the fullest device: one batch, with LoadReshard before and after, and the arrays without batch dimensions
	HostBytes         int64 // of the fullest process: blocks rounded up to 64 bytes, times prefetch + 1; with LoadGlobal one whole batch more
	InterconnectBytes int64 // with LoadReshard, per step: what every device gets from other devices, at least; else 0
	NetworkBytes      int64 // of these, what every process gets from other processes, each byte once
	StepsPerEpoch     int64
	RemainderRecords  int64 // that do not fill the last step
}

// costs are bytes per step.
type costs struct {
	totals    Totals
	known     bool      // no array is broken
	processes []int64   // bytes gathered by the n-th process of the mesh
	host      []int64   // and the memory it needs
	traffic   []traffic // and what it gets from others
	least     int64     // bytes gathered by all processes with LoadProcess
	blocks    int64     // of the process that has most
	walks     int64     // devices to be visited: those of the mesh, for every different tiling
	rows      rowTable
}

// traffic is what the devices of a process get at every step.
type traffic struct{ interconnect, network int64 }

// Totals gives the sums.
func (l *Layout) Totals() Totals { return l.costs.totals }

// of gives a number of the n-th process, or -1.
func (c costs) of(n int, list []int64) int64 {
	if !c.known {
		return -1
	}
	return list[n]
}

// moved gives what the n-th process gets per step, or -1.
func (c costs) moved(n int) traffic {
	switch {
	case !c.known:
		return traffic{-1, -1}
	case c.traffic == nil:
		return traffic{}
	}
	return c.traffic[n]
}

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

// countBlocks counts what the processes hold of one batch; what they gather,
// except with LoadGlobal; and what they would gather with LoadProcess.
func (l *Layout) countBlocks(c *costs, groups [][]int) {
	blocks := make([]int64, len(c.processes))
	for _, alike := range groups {
		var bytes, rounded int64 // of one part of each array
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

// sumUp makes the totals of what was counted.
func (l *Layout) sumUp(c *costs) {
	var whole int64 // memory in which a batch is gathered before a part is kept
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

// alike groups the arrays that are read by a key of their tilings, so that a
// large mesh is walked once for each.
func (l *Layout) alike(key func(i int) string) [][]int {
	return l.grouped(func(i int) (string, bool) {
		if a := l.arrays[i]; a.Kind == Static || a.Delivered == nil {
			return "", false
		}
		return key(i), true
	})
}

// distinct counts the distinct tiles of every process.
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

// tilingKey tells tilings of one mesh apart that are not the same.
func tilingKey(t sharding.Tiling) string {
	var key []byte
	for _, w := range t.Weights() {
		key = binary.AppendUvarint(key, uint64(w))
	}
	return string(key)
}

// shardBytes gives the size of one part of an array.
func shardBytes(a Array, t sharding.Tiling) int64 {
	n := int64(a.Type.Size())
	for _, size := range t.Index(0).Shape() {
		n *= int64(size)
	}
	return n
}

// partBytes gives the size of one part of an array as it is delivered.
func (l *Layout) partBytes(i int) int64 { return shardBytes(l.arrays[i], l.delivered[i]) }

// slots rounds a size up to what it takes.
func slots(bytes int64) int64 { return (bytes + slot - 1) / slot * slot }

// steps gives the steps of an epoch and the records that do not fill the last.
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

// arrayBytes gives the size of the whole array.
func arrayBytes(a Array) int64 {
	n := int64(a.Type.Size())
	for _, size := range a.Shape {
		n = plus(0, n, int64(size))
	}
	return n
}

// plus gives sum + size × times for numbers from 0, or a number beyond
// MaxInteger, which check reports, where that is too large.
func plus(sum, size, times int64) int64 {
	hi, lo := bits.Mul64(uint64(size), uint64(times))
	if hi != 0 || lo > MaxInteger || uint64(sum)+lo > MaxInteger {
		return MaxInteger + 1
	}
	return sum + int64(lo)
}
