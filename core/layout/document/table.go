package document

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// MaxTable is the most numbers of one table: 32 MiB.
//
// For large meshes, a table holds as numbers what the lists of a report hold as
// text. A program uses a table without parsing. All numbers are integers up to 2^53,
// which a float64 holds exactly. A caller asks for count rows of a table, starting
// with row from. A table is empty if the layout's errors make its numbers unknown, or
// if it would be larger than MaxTable.
const MaxTable = 1 << 22

// DeviceTable has 4 + 2 × rank numbers for each device, in mesh order. They are
// its process, its id, its replica number, the bytes of its part of an array,
// and a start and a stop for every dimension.
func DeviceTable(l *layout.Layout, array, from, count int) []float64 {
	if array < 0 || array >= len(l.Arrays()) || l.Arrays()[array].Sharding == nil {
		return nil
	}
	t := l.Tiling(array)
	replicas, bytes := t.Replicas(), float64(l.ShardBytes(array))
	return deviceTable(l, t, 4, from, count, func(row []float64, position int, _ sharding.Index) {
		d := l.Mesh().Device(position)
		row[0], row[1], row[2], row[3] = float64(d.Process), float64(d.ID), float64(replicas[position]), bytes
	})
}

// DeliveredTable has 1 + 2 × rank numbers for each device, in mesh order: the
// bytes that it gets from other devices, and a start and a stop for every
// dimension of what is delivered to it. It is empty for an array that is delivered
// with the partition spec of the layout.
func DeliveredTable(l *layout.Layout, array, from, count int) []float64 {
	if array < 0 || array >= len(l.Arrays()) || !l.Arrays()[array].Resharded() {
		return nil
	}
	a, t := l.Arrays()[array], l.Tiling(array)
	bytes, part, tiles := l.ShardBytes(array), make(sharding.Index, len(a.Shape)), t.All()
	return deviceTable(l, l.DeliveredTiling(array), 1, from, count, func(row []float64, position int, had sharding.Index) {
		t.Fill(part, int(tiles[position]))
		row[0] = float64(bytes - commonBytes(a, part, had))
	})
}

// deviceTable makes one row for each device. fill writes the first numbers of a row;
// the start and the stop of every dimension of the device's part follow.
func deviceTable(l *layout.Layout, t sharding.Tiling, first, from, count int, fill func(row []float64, position int, part sharding.Index)) []float64 {
	from, stop := clip(from, count, l.Mesh().Size())
	tiles, part := t.All(), make(sharding.Index, len(t.Tiles()))
	width := first + 2*len(part)
	if (stop-from)*width > MaxTable {
		return nil
	}
	table := make([]float64, (stop-from)*width)
	for position := from; position < stop; position++ {
		row := table[(position-from)*width:][:width]
		t.Fill(part, int(tiles[position]))
		fill(row, position, part)
		for d, p := range part {
			row[first+2*d], row[first+2*d+1] = float64(p[0]), float64(p[1])
		}
	}
	return table
}

// ProcessTable has 7 + 2 × ranges numbers for each process of the mesh, in
// ascending order:
//
//   - its number, and the number of its devices;
//   - the bytes that it gathers per step, and the host memory that it needs;
//   - the bytes that its devices get per step from other devices, and the part
//     of them that comes from other processes;
//   - the number of its row ranges, and a start and a stop of each range.
//
// A number that is not known is -1. The number of ranges is also -1 if they do
// not fit into the table: ask for fewer processes.
func ProcessTable(l *layout.Layout, from, count int) []float64 {
	const fixed = 7
	processes := l.Mesh().Processes()
	from, stop := clip(from, count, len(processes))
	free := MaxTable - fixed*(stop-from) // positive, because a mesh has at most MaxProcesses processes
	table := []float64{}
	for n := from; n < stop; n++ {
		c := l.ProcessCosts(n)
		ranges := len(c.Rows)
		if c.Group < 0 || 2*ranges > free {
			c.Rows, ranges = nil, -1
		}
		free -= 2 * len(c.Rows)
		table = append(table, float64(processes[n]), float64(len(l.Mesh().Owned(n))))
		for _, bytes := range []int64{c.ReadBytes, c.HostBytes, c.InterconnectBytes, c.NetworkBytes} {
			table = append(table, orUnknown(bytes))
		}
		table = append(table, float64(ranges))
		for _, r := range c.Rows {
			table = append(table, float64(r[0]), float64(r[1]))
		}
	}
	return table
}

func orUnknown(bytes int64) float64 {
	if bytes > layout.MaxInteger {
		return -1
	}
	return float64(bytes)
}

// clip limits the rows [from, from+count) to the rows [0, size) of a table.
func clip(from, count, size int) (start, stop int) {
	from = min(max(from, 0), size)
	return from, from + min(max(count, 0), size-from)
}
