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
	BatchBytes       int64 // of one global batch as delivered, mask and extras included
	ReadBytes        int64 // gathered by all processes per step; more than BatchBytes where processes overlap
	DeviceBytes      int64 // of the fullest device: one batch, and the arrays without batch dimensions
	HostBytes        int64 // of the fullest process: blocks rounded up to 64 bytes, times prefetch + 1
	StepsPerEpoch    int64
	RemainderRecords int64 // that do not fill the last step
}

// costs are bytes per step.
type costs struct {
	totals    Totals
	known     bool    // no array is broken
	processes []int64 // bytes gathered by the n-th process of the mesh
	blocks    int64   // of the process that has most
	walks     int64   // devices to be visited: those of the mesh, for every different tiling
	rows      rowTable
}

// Totals gives the sums.
func (l *Layout) Totals() Totals { return l.costs.totals }

// bytes gives what the n-th process gathers per step, or -1.
func (c costs) bytes(n int) int64 {
	if !c.known {
		return -1
	}
	return c.processes[n]
}

func (l *Layout) count() costs {
	c := costs{known: true, processes: make([]int64, len(l.owners.processes))}
	c.totals.StepsPerEpoch, c.totals.RemainderRecords = l.steps()
	for i, a := range l.arrays {
		c.known = c.known && a.Sharding != nil
		if a.Kind != Static {
			c.totals.BatchBytes = plus(c.totals.BatchBytes, arrayBytes(l.arrays[i]), 1)
		}
	}
	alike := l.alike()
	c.walks = int64(len(alike)) * int64(l.mesh.Size())
	if !c.known || c.walks > maxWalks {
		c.known = false
		c.totals.ReadBytes, c.totals.DeviceBytes, c.totals.HostBytes, c.processes = -1, -1, -1, nil
		return c
	}
	l.countShards(&c, alike)
	c.rows = l.tableRows()
	return c
}

func (l *Layout) countShards(c *costs, groups [][]int) {
	slots, blocks := make([]int64, len(c.processes)), make([]int64, len(c.processes))
	for _, alike := range groups {
		var bytes, rounded int64 // of one part of each array
		for _, i := range alike {
			b := shardBytes(l.arrays[i], l.tilings[i])
			bytes, rounded = plus(bytes, b, 1), plus(rounded, (b+slot-1)/slot*slot, 1)
		}
		for n, k := range l.distinct(l.tilings[alike[0]]) {
			c.processes[n] = plus(c.processes[n], bytes, int64(k))
			slots[n] = plus(slots[n], rounded, int64(k))
			blocks[n] += int64(k) * int64(len(alike))
			c.blocks = max(c.blocks, blocks[n])
		}
	}
	for i, a := range l.arrays {
		c.totals.DeviceBytes = plus(c.totals.DeviceBytes, shardBytes(a, l.tilings[i]), 1)
	}
	for n := range slots {
		c.totals.ReadBytes = plus(c.totals.ReadBytes, c.processes[n], 1)
		c.totals.HostBytes = max(c.totals.HostBytes, plus(0, slots[n], int64(l.Prefetch())+1))
	}
}

// alike groups the arrays that are read by their tilings, so that a large mesh
// is walked once for each.
func (l *Layout) alike() [][]int {
	var groups [][]int
	number := map[string]int{}
	for i, a := range l.arrays {
		if a.Kind == Static || a.Sharding == nil {
			continue
		}
		key := tilingKey(l.tilings[i])
		n, ok := number[key]
		if !ok {
			n = len(groups)
			number[key] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// distinct counts the distinct tiles of every process.
func (l *Layout) distinct(t sharding.Tiling) []int32 {
	ids, seen := t.All(), make([]int32, t.Count())
	counts := make([]int32, len(l.owners.processes))
	for n := range counts {
		for _, position := range l.owners.group(n) {
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
