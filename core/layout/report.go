package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

const (
	// maxListed is the largest mesh whose devices are listed without asking,
	// and the largest number of processes that are.
	maxListed = 1024

	// maxPairs bounds the [start, stop) pairs in the lists of devices, so that
	// no document makes a report that fills the memory.
	maxPairs = 1 << 24
)

// ReportOptions says what a report lists.
type ReportOptions struct {
	Tables bool // list devices and processes however many there are
	Ranges int  // the most [start, stop) ranges in the lists of devices, and of processes; 0 for 16 million
}

func (o ReportOptions) ranges() int {
	if o.Ranges == 0 {
		return maxPairs
	}
	return o.Ranges
}

// Report gives the layout as JSON, for programs:
//
//	{"meshfeed":1,"arrays":{…},"processes":[…],"totals":{…},"problems":[…]}
//
// For every array the global and the shard shape, whether it is replicated,
// and for every device its mesh position, process, id, index (a full
// [start, stop) pair per dimension), replica number and bytes. For every
// process the rows of the global batch it reads, the bytes it gathers per step,
// the memory for all batches, the bytes that its devices get over the
// interconnect per step and those of them that come from other processes, and
// the processes that read the same rows of the dataset. With LoadReshard an
// array also has the spec and the shard shape by which it is delivered, and a
// device the index that it gets so and the bytes it then receives from others.
// What cannot be known is null: the shards
// of a broken array, sums over it, an epoch without a dataset. Devices are null
// beyond 1,024 unless o asks for tables, and so are processes; same_rows_as is
// null beyond 1,024 processes always, and devices are from the array on with
// which all lists would hold more than 16 million ranges, or as many as o says;
// likewise the rows of processes.
func (l *Layout) Report(o ReportOptions) []byte {
	w := &writer{}
	w.open('{')
	w.key("meshfeed").int(Version)
	w.key("arrays").open('{')
	seen := map[string]bool{}
	pairs, list := 0, o.Tables || l.mesh.Size() <= maxListed
	for i, a := range l.arrays {
		pairs += l.mesh.Size() * max(len(a.Shape), 1)
		if l.resharded(i) {
			pairs += l.mesh.Size() * len(a.Shape)
		}
		if !seen[a.Name] { // a mask or extra whose name is taken is left out
			w.key(a.Name).reportArray(l, i, list && pairs <= o.ranges())
		}
		seen[a.Name] = true
	}
	w.close('}')
	w.key("processes").reportProcesses(l, o.Tables || len(l.processes) <= maxListed, o.ranges())
	w.key("totals").reportTotals(l.costs.totals)
	w.key("problems").open('[')
	for _, p := range l.problems {
		w.problem(p)
	}
	w.close(']')
	w.close('}')
	return w.text
}

func (w *writer) reportArray(l *Layout, i int, list bool) {
	a, t := l.arrays[i], l.tilings[i]
	w.open('{')
	w.key("global_shape").ints(a.Shape...)
	if a.Sharding == nil {
		w.key("shard_shape").word("null")
		w.key("replicated").word("null")
		w.key("devices").word("null")
		w.close('}')
		return
	}
	w.key("shard_shape").ints(t.Index(0).Shape()...)
	w.key("replicated").bool(a.Sharding.IsFullyReplicated())
	if l.resharded(i) {
		w.key("delivered").open('{')
		w.key("spec").spec(a.Delivered.Spec())
		w.key("shard_shape").ints(l.delivered[i].Index(0).Shape()...)
		w.close('}')
	}
	if w.key("devices"); list {
		w.devices(l, i)
	} else {
		w.word("null")
	}
	w.close('}')
}

func (w *writer) devices(l *Layout, i int) {
	a, t := l.arrays[i], l.tilings[i]
	replicas := make([]int32, t.Count())
	index, bytes := make(sharding.Index, len(a.Shape)), shardBytes(a, t)
	w.text = slices.Grow(w.text, l.mesh.Size()*(90+20*len(index)))
	w.open('[')
	for position, tile := range t.All() {
		d := l.mesh.Device(position)
		t.Fill(index, int(tile))
		w.open('{')
		w.key("mesh_index").int(int64(position))
		w.key("process").int(int64(d.Process))
		w.key("id").int(int64(d.ID))
		w.key("index").pairs(index)
		w.key("replica").int(int64(replicas[tile]))
		w.key("bytes").int(bytes)
		if l.resharded(i) {
			had := l.delivered[i].Index(l.delivered[i].At(position))
			w.key("delivered_index").pairs(had)
			w.key("received_bytes").int(bytes - commonBytes(a, had, index))
		}
		w.close('}')
		replicas[tile]++
	}
	w.close(']')
}

func (w *writer) reportProcesses(l *Layout, list bool, ranges int) {
	if !list {
		w.word("null")
		return
	}
	var same [][]int
	if len(l.processes) <= maxListed {
		same = l.costs.rows.members(l.processes)
	}
	w.open('[')
	for n, p := range l.processes {
		w.open('{')
		w.key("process").int(int64(p))
		w.key("devices").int(int64(len(l.mesh.Owned(n))))
		if ranges -= l.costs.ranges(n); ranges < 0 {
			w.key("rows").word("null")
		} else {
			w.key("rows").rowsOf(l.costs, n)
		}
		w.key("bytes_per_step").known(l.costs.of(n, l.costs.processes))
		w.key("host_bytes").known(l.costs.of(n, l.costs.host))
		w.key("interconnect_bytes").known(l.costs.moved(n).interconnect)
		w.key("network_bytes").known(l.costs.moved(n).network)
		w.key("same_rows_as").others(l.costs.rows, same, n, p)
		w.close('}')
	}
	w.close(']')
}

// ranges gives the number of row ranges of the n-th process.
func (c costs) ranges(n int) int {
	if !c.rows.known {
		return 0
	}
	return len(c.rows.of(n))
}

func (w *writer) rowsOf(c costs, n int) {
	if !c.rows.known {
		w.word("null")
		return
	}
	w.pairs(c.rows.of(n))
}

// others lists the processes of p's group, the n-th of the mesh, but p.
func (w *writer) others(t rowTable, groups [][]int, n, p int) {
	if groups == nil {
		w.word("null")
		return
	}
	w.open('[')
	for _, q := range groups[t.group[n]] {
		if q != p && len(t.of(n)) > 0 {
			w.int(int64(q))
		}
	}
	w.close(']')
}

func (w *writer) reportTotals(t Totals) {
	w.open('{')
	w.key("batch_bytes").known(t.BatchBytes)
	w.key("read_bytes").known(t.ReadBytes)
	w.key("device_bytes").known(t.DeviceBytes)
	w.key("host_bytes").known(t.HostBytes)
	w.key("interconnect_bytes").known(t.InterconnectBytes)
	w.key("network_bytes").known(t.NetworkBytes)
	w.key("steps_per_epoch").known(t.StepsPerEpoch)
	w.key("remainder_records").known(t.RemainderRecords)
	w.close('}')
}

// known writes a number that is -1 or too large where it cannot be known.
func (w *writer) known(n int64) {
	if n < 0 || n > MaxInteger {
		w.word("null")
		return
	}
	w.int(n)
}

func (w *writer) bool(b bool) {
	if b {
		w.word("true")
	} else {
		w.word("false")
	}
}

func (w *writer) problem(p Problem) {
	w.open('{')
	w.key("severity").str(string(p.Severity))
	w.key("code").str(string(p.Code))
	w.key("path").str(p.Path)
	w.key("message").str(p.Message)
	w.key("hint").str(p.Hint)
	w.key("facts").open('{')
	for _, f := range p.Facts {
		w.key(f.Name).int(f.Value)
	}
	w.close('}')
	w.close('}')
}
