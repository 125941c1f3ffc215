package layout

import "github.com/meshfeed/meshfeed/core/sharding"

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
	return l.deviceTable(t, 4, from, count, func(row []float64, position int, _ sharding.Index) {
		d := l.mesh.Device(position)
		row[0], row[1], row[2], row[3] = float64(d.Process), float64(d.ID), float64(replicas[position]), bytes
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
	a, t := l.arrays[array], l.tilings[array]
	bytes, part, tiles := shardBytes(a, t), make(sharding.Index, len(a.Shape)), t.All()
	return l.deviceTable(l.delivered[array], 1, from, count, func(row []float64, position int, had sharding.Index) {
		t.Fill(part, int(tiles[position]))
		row[0] = float64(bytes - commonBytes(a, part, had))
	})
}

// deviceTable gives rows that begin with as many numbers as fill writes, and
// go on with the device's part.
func (l *Layout) deviceTable(t sharding.Tiling, first, from, count int, fill func(row []float64, position int, part sharding.Index)) []float64 {
	from, stop := clip(from, count, l.mesh.Size())
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

// ProcessTable gives for each process of the mesh, in ascending order: its
// number, its devices, the bytes it gathers per step, the host memory it
// needs, the bytes that its devices get from other devices and from other
// processes per step, and the number of its row ranges, then a start and a
// stop of each: 7 + 2 × ranges numbers. What cannot be known is -1, and so are
// ranges for which the table has no room: ask for fewer processes.
func (l *Layout) ProcessTable(from, count int) []float64 {
	const least = 7
	from, stop := clip(from, count, len(l.processes))
	room := MaxTable - least*(stop-from) // there are at most MaxProcesses
	table := []float64{}
	for n := from; n < stop; n++ {
		rows, ranges := [][2]int(nil), -1
		if l.costs.rows.known && 2*l.costs.ranges(n) <= room {
			rows = l.costs.rows.of(n)
			ranges = len(rows)
		}
		room -= 2 * len(rows)
		moved := l.costs.moved(n)
		table = append(table, float64(l.processes[n]), float64(len(l.mesh.Owned(n))))
		for _, bytes := range []int64{l.costs.of(n, l.costs.processes), l.costs.of(n, l.costs.host), moved.interconnect, moved.network} {
			table = append(table, orUnknown(bytes))
		}
		table = append(table, float64(ranges))
		for _, r := range rows {
			table = append(table, float64(r[0]), float64(r[1]))
		}
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
