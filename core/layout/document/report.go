package document

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

const (
	// maxListed is the largest number of devices, and of processes, that a
	// report lists unless Tables asks for more.
	maxListed = 1024

	// maxRanges bounds the [start, stop) pairs in the lists of devices, and in the lists of
	// processes, so that no report exhausts the memory.
	maxRanges = 1 << 24
)

// ReportOptions selects what a report lists.
type ReportOptions struct {
	Tables bool // list devices and processes however many there are
	Ranges int  // the most [start, stop) ranges in the lists of devices, and of processes; 0 for 16 million
}

// Report describes a layout as JSON, for programs:
//
//	{"meshfeed":1,"arrays":{…},"processes":[…],"totals":{…},"problems":[…]}
//
// An array has its global shape, its shard shape, and whether it is replicated.
// With LoadReshard it also has the spec and the shard shape before resharding. Each
// of its devices has a mesh position, process, id, index (a full [start, stop) pair
// per dimension), replica number and bytes. With LoadReshard a device also has its
// index before resharding, and the bytes that it then receives from other devices.
//
// A process has its number of devices, the rows of the global batch that it
// reads, the bytes that it gathers per step, and the memory for all batches. It
// also has the bytes that its devices receive over the interconnect per step, and
// how many of these come from other processes. A list names the processes that
// read the same rows of the dataset.
//
// A value that is not known is null: the shards of a broken array, sums over it,
// an epoch without a dataset. These lists are null as well:
//
//   - devices of a mesh with more than 1,024, and processes if there are more,
//     unless o asks for tables;
//   - same_rows_as if there are more than 1,024 processes;
//   - devices of an array if the lists of all arrays up to it have more than
//     o.Ranges ranges; likewise the rows of a process.
func Report(l *layout.Layout, o ReportOptions) []byte {
	if o.Ranges == 0 {
		o.Ranges = maxRanges
	}
	w, devices := &jsontext.Writer{}, l.Mesh().Size()
	w.Open('{')
	w.Key("meshfeed").Int(Version)
	w.Key("arrays").Open('{')
	seen := map[string]bool{}
	ranges, list := 0, o.Tables || devices <= maxListed
	for i, a := range l.Arrays() {
		ranges += devices * max(len(a.Shape), 1)
		if a.Resharded() {
			ranges += devices * len(a.Shape)
		}
		if !seen[a.Name] { // a mask or extra is left out if its name is taken
			w.Key(a.Name)
			reportArray(w, l, i, list && ranges <= o.Ranges)
		}
		seen[a.Name] = true
	}
	w.Close('}')
	w.Key("processes")
	reportProcesses(w, l, o)
	w.Key("totals")
	reportTotals(w, l.Totals())
	w.Key("problems").Open('[')
	for _, p := range l.Problems() {
		p.Write(w)
	}
	w.Close(']')
	w.Close('}')
	return w.Text
}

func reportArray(w *jsontext.Writer, l *layout.Layout, i int, list bool) {
	a := l.Arrays()[i]
	w.Open('{')
	w.Key("global_shape").Ints(a.Shape...)
	if a.Sharding == nil {
		w.Key("shard_shape").Null()
		w.Key("replicated").Null()
		w.Key("devices").Null()
		w.Close('}')
		return
	}
	w.Key("shard_shape").Ints(l.Tiling(i).Index(0).Shape()...)
	w.Key("replicated").Bool(a.Sharding.IsFullyReplicated())
	if a.Resharded() {
		w.Key("delivered").Open('{')
		w.Key("spec")
		WriteSpec(w, a.Delivered.Spec())
		w.Key("shard_shape").Ints(l.DeliveredTiling(i).Index(0).Shape()...)
		w.Close('}')
	}
	if w.Key("devices"); list {
		reportDevices(w, l, i)
	} else {
		w.Null()
	}
	w.Close('}')
}

func reportDevices(w *jsontext.Writer, l *layout.Layout, i int) {
	a, t, m := l.Arrays()[i], l.Tiling(i), l.Mesh()
	replicas, delivered := t.Replicas(), l.DeliveredTiling(i)
	index, before, bytes := make(sharding.Index, len(a.Shape)), make(sharding.Index, len(a.Shape)), l.ShardBytes(i)
	w.Text = slices.Grow(w.Text, m.Size()*(90+20*len(index)))
	w.Open('[')
	for position, tile := range t.All() {
		d := m.Device(position)
		t.Fill(index, int(tile))
		w.Open('{')
		w.Key("mesh_index").Int(int64(position))
		w.Key("process").Int(int64(d.Process))
		w.Key("id").Int(int64(d.ID))
		w.Key("index").Pairs(index)
		w.Key("replica").Int(int64(replicas[position]))
		w.Key("bytes").Int(bytes)
		if a.Resharded() {
			delivered.Fill(before, delivered.At(position))
			w.Key("delivered_index").Pairs(before)
			w.Key("received_bytes").Int(bytes - commonBytes(a, before, index))
		}
		w.Close('}')
	}
	w.Close(']')
}

// commonBytes returns the size of what two parts of an array have in common.
func commonBytes(a layout.Array, x, y sharding.Index) int64 {
	n := int64(a.Type.Size())
	for d := range x {
		n *= int64(max(0, min(x[d][1], y[d][1])-max(x[d][0], y[d][0])))
	}
	return n
}

func reportProcesses(w *jsontext.Writer, l *layout.Layout, o ReportOptions) {
	processes, ranges := l.Mesh().Processes(), o.Ranges
	if !o.Tables && len(processes) > maxListed {
		w.Null()
		return
	}
	groups := map[int][]int{}
	if len(processes) <= maxListed {
		for n, p := range processes {
			group := l.ProcessCosts(n).Group
			groups[group] = append(groups[group], p)
		}
	}
	w.Open('[')
	for n, p := range processes {
		c := l.ProcessCosts(n)
		w.Open('{')
		w.Key("process").Int(int64(p))
		w.Key("devices").Int(int64(len(l.Mesh().Owned(n))))
		w.Key("rows")
		if ranges -= len(c.Rows); ranges < 0 || c.Group < 0 {
			w.Null()
		} else {
			w.Pairs(c.Rows)
		}
		w.Field("bytes_per_step", c.ReadBytes).Field("host_bytes", c.HostBytes).
			Field("interconnect_bytes", c.InterconnectBytes).Field("network_bytes", c.NetworkBytes)
		w.Key("same_rows_as")
		if c.Group < 0 || len(processes) > maxListed {
			w.Null()
		} else {
			reportOthers(w, c, groups[c.Group], p)
		}
		w.Close('}')
	}
	w.Close(']')
}

// reportOthers writes the processes of a group except p, if they read any rows.
func reportOthers(w *jsontext.Writer, c layout.ProcessCosts, group []int, p int) {
	w.Open('[')
	for _, q := range group {
		if q != p && len(c.Rows) > 0 {
			w.Int(int64(q))
		}
	}
	w.Close(']')
}

func reportTotals(w *jsontext.Writer, t layout.Totals) {
	w.Open('{')
	w.Field("batch_bytes", t.BatchBytes).Field("read_bytes", t.ReadBytes).Field("device_bytes", t.DeviceBytes).Field("host_bytes", t.HostBytes).
		Field("interconnect_bytes", t.InterconnectBytes).Field("network_bytes", t.NetworkBytes).
		Field("steps_per_epoch", t.StepsPerEpoch).Field("remainder_records", t.RemainderRecords)
	w.Close('}')
}
