package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// MaxTable bounds the numbers of one table: 32 MiB.
//
// Tables hold in numbers what the lists of a report hold in text, for large
// meshes: a program maps them instead of parsing them. All numbers are
// integers within 2^53, so that a float64 is exact. The rows of a table are
// asked for in parts, count of them from the one with number from; a table has
// no numbers if there is nothing to know, and if it would be larger than
// MaxTable.
const MaxTable = 1 << 22

// DeviceTable gives for each device, in mesh order, its process, its id, its
// replica number, the bytes of its part of an array, and a start and a stop
// for every dimension: 4 + 2 × rank numbers.
func (l *Layout) DeviceTable(array, from, count int) []float64 {
	if array < 0 || array >= len(l.arrays) || l.arrays[array].Sharding == nil {
		return nil
	}
	a, t := l.arrays[array], l.tilings[array]
	replicas, bytes := t.Replicas(), float64(shardBytes(a, t))
	return l.deviceTable(t, 4, from, count, func(position int, row []float64) []float64 {
		d := l.mesh.Device(position)
		return append(row, float64(d.Process), float64(d.ID), float64(replicas[position]), bytes)
	})
}

// DeliveredTable gives for each device, in mesh order, of an array that is
// delivered otherwise than its spec says (LoadReshard): the bytes that it gets
// from other devices, and a start and a stop of what is delivered to it for
// every dimension: 1 + 2 × rank numbers.
func (l *Layout) DeliveredTable(array, from, count int) []float64 {
	if array < 0 || array >= len(l.arrays) || !l.resharded(array) {
		return nil
	}
	a, t, had := l.arrays[array], l.tilings[array], l.delivered[array]
	bytes, x, y := shardBytes(a, t), make(sharding.Index, len(a.Shape)), make(sharding.Index, len(a.Shape))
	return l.deviceTable(had, 1, from, count, func(position int, row []float64) []float64 {
		t.Fill(x, t.At(position))
		had.Fill(y, had.At(position))
		return append(row, float64(bytes-commonBytes(a, x, y)))
	})
}

// deviceTable gives rows that begin as head says, and go on with the device's
// part.
func (l *Layout) deviceTable(t sharding.Tiling, width, from, count int, head func(position int, row []float64) []float64) []float64 {
	from, stop := clip(from, count, l.mesh.Size())
	index := make(sharding.Index, len(t.Tiles()))
	if width += 2 * len(index); (stop-from)*width > MaxTable {
		return nil
	}
	table := make([]float64, 0, (stop-from)*width)
	for position := from; position < stop; position++ {
		table = head(position, table)
		t.Fill(index, t.At(position))
		table = appendPairs(table, index)
	}
	return table
}

// ProcessTable gives for each process of the mesh, in ascending order: its
// number, its devices, the bytes it gathers per step, the host memory it
// needs, the bytes that its devices get from other devices and from other
// processes per step, and the number of its row ranges, then a start and a
// stop of each: 7 + 2 × ranges numbers. What cannot be known is -1.
func (l *Layout) ProcessTable(from, count int) []float64 {
	from, stop := clip(from, count, len(l.owners.processes))
	table := []float64{}
	for n := from; n < stop; n++ {
		moved := l.costs.moved(n)
		table = append(table, float64(l.owners.processes[n]), float64(len(l.owners.group(n))))
		for _, bytes := range []int64{l.costs.of(n, l.costs.processes), l.costs.of(n, l.costs.host), moved.interconnect, moved.network} {
			table = append(table, orUnknown(bytes))
		}
		if !l.costs.rows.known {
			table = append(table, -1)
			continue
		}
		rows := l.costs.rows.of(n)
		table = appendPairs(append(table, float64(len(rows))), rows)
		if len(table) > MaxTable {
			return nil
		}
	}
	return table
}

func appendPairs(table []float64, pairs [][2]int) []float64 {
	table = slices.Grow(table, 2*len(pairs))
	for _, p := range pairs {
		table = append(table, float64(p[0]), float64(p[1]))
	}
	return table
}

func orUnknown(bytes int64) float64 {
	if bytes > MaxInteger {
		return -1
	}
	return float64(bytes)
}

// clip cuts count from from to what there is.
func clip(from, count, size int) (start, stop int) {
	from = min(max(from, 0), size)
	return from, from + min(max(count, 0), size-from)
}
