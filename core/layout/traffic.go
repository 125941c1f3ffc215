package layout

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// This file counts the fewest bytes that can move between devices when a batch is
// resharded. With T(d) the elements of an array that device d needs, and D(d) the
// elements that the loader delivered to it,
//
//	interconnect(process) = Σ over its devices d of |T(d) \ D(d)|
//	network(process)      = |∪ T(d) \ ∪ D(d)|, the unions over its devices
//
// in bytes, summed over the arrays. No program moves less, because every device
// must get the elements that it needs and does not have. A compiler may move more.
// For example, k devices need all of an array, and the loader delivered a k-th to
// each. Then every device gets (k-1)/k of the array, as in an all-gather.
//
// Delivered parts are whole rows, and no two devices get the same row. So the
// counts follow from the number of rows that two parts of the batch share.

// countTraffic counts the bytes that move, and the bytes that LoadProcess would
// gather.
func (l *Layout) countTraffic(c *costs) {
	c.traffic, c.least = make([]traffic, len(c.processes)), 0
	for _, alike := range l.alike(l.cutKey) {
		var bytes, row int64 // sizes of one part and of one row of it, summed over the arrays
		for _, i := range alike {
			b := shardBytes(l.arrays[i], l.tilings[i])
			bytes, row = plus(bytes, b, 1), plus(row, b/l.rowsPerPart(i), 1)
		}
		for n, have := range l.present(alike[0]) {
			c.least = plus(c.least, bytes, have.parts)
			t := &c.traffic[n]
			t.interconnect = plus(t.interconnect, missing(bytes, int64(len(l.mesh.Owned(n))), row, have.kept), 1)
			t.network = plus(t.network, missing(bytes, have.parts, row, have.shared), 1)
		}
	}
	for _, t := range c.traffic {
		c.totals.InterconnectBytes = plus(c.totals.InterconnectBytes, t.interconnect, 1)
		c.totals.NetworkBytes = plus(c.totals.NetworkBytes, t.network, 1)
	}
}

// missing returns the bytes of parts that are not present: parts times part bytes,
// less rows times row bytes.
func missing(part, parts, row, rows int64) int64 {
	bytes := plus(0, part, parts)
	if bytes > MaxInteger {
		return bytes
	}
	return bytes - row*rows
}

// cutKey is equal for two arrays if their parts and their rows are cut alike.
func (l *Layout) cutKey(i int) string {
	t := l.tilings[i]
	return fmt.Sprint(tilingKey(t), t.Tiles()[:l.arrays[i].BatchDims])
}

// rowsPerPart returns the rows of the batch in one part of an array.
func (l *Layout) rowsPerPart(i int) int64 {
	n := int64(1)
	for _, size := range l.tilings[i].Index(0).Shape()[:l.arrays[i].BatchDims] {
		n *= int64(size)
	}
	return n
}

// presence counts what a process has of an array before resharding.
type presence struct {
	parts  int64 // distinct parts that its devices need
	kept   int64 // rows that were delivered to the device that needs them, summed over its devices
	shared int64 // rows that were delivered to the process, summed over the distinct parts that need them
}

// present returns the presence of array i in every process, in ascending order.
func (l *Layout) present(i int) []presence {
	a := l.arrays[i]
	batch := a.Shape[:a.BatchDims]
	need, have := l.tilings[i].Leading(a.BatchDims), l.delivered[i].Leading(a.BatchDims)
	parts, needed, delivered := l.tilings[i].All(), need.All(), have.All()
	tiles, index := need.Tiles(), make(sharding.Index, a.BatchDims)
	seen := make([]int32, l.tilings[i].Count()) // for every part, the last process that needs it, plus one
	owner, times := make([]int32, need.Count()), make([]int64, need.Count())
	list := make([]presence, len(l.processes))
	for n := range list {
		p, me := &list[n], int32(n)+1
		for _, position := range l.mesh.Owned(n) {
			part, tile := parts[position], needed[position]
			if seen[part] == me {
				continue
			}
			if owner[tile] != me {
				owner[tile], times[tile] = me, 0
			}
			seen[part] = me
			times[tile]++ // parts of these rows
			p.parts++
		}
		for _, position := range l.mesh.Owned(n) {
			have.Fill(index, int(delivered[position]))
			touched(tiles, batch, index, 0, 1, func(tile int, rows int64) {
				if tile == int(needed[position]) {
					p.kept += rows
				}
				if owner[tile] == me {
					p.shared += rows * times[tile]
				}
			})
		}
	}
	return list
}

// touched visits the tiles of the batch that share rows with a part of it, with the
// number of these rows. It recurses over the dimensions of the batch; tile and rows
// are the results for the dimensions before, 0 and 1 at first.
func touched(tiles, batch []int, part sharding.Index, tile int, rows int64, visit func(tile int, rows int64)) {
	if len(tiles) == 0 {
		visit(tile, rows)
		return
	}
	size := batch[0] / tiles[0]
	for k := part[0][0] / size; k*size < part[0][1]; k++ {
		common := min(part[0][1], (k+1)*size) - max(part[0][0], k*size)
		touched(tiles[1:], batch[1:], part[1:], tile*tiles[0]+k, rows*int64(common), visit)
	}
}

// trafficWalks bounds the number of tiles that countTraffic visits.
func (l *Layout) trafficWalks() int64 {
	walks := int64(0)
	if l.Loading() != LoadReshard {
		return 0
	}
	for _, alike := range l.alike(l.cutKey) {
		a := l.arrays[alike[0]]
		each := int64(2)
		need, have := l.tilings[alike[0]].Tiles(), l.delivered[alike[0]].Tiles()
		for d := range a.BatchDims {
			if have[d]%need[d] != 0 { // else every delivered part lies within one tile
				each = plus(0, each, int64(need[d]/have[d]+2))
			}
		}
		walks = plus(walks, each, int64(l.mesh.Size()))
	}
	return walks
}
