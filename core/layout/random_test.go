package layout_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/documents"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestRandomLayouts compares layouts with results computed device by device and
// row by row from the index map of package sharding.
func TestRandomLayouts(t *testing.T) {
	r, layouts := random.New(t), 150
	if os.Getenv("MESHFEED_DEEP") != "" {
		layouts = 10000
	}
	for i := range layouts {
		d := documents.Random(r)
		l, err := layout.Draft(d)
		if err != nil {
			t.Fatalf("layout %d, %s: %v", i, document.Canonical(d), err)
		}
		if l.Err() != nil {
			t.Fatalf("layout %d, %s: %v", i, document.Canonical(d), l.Err())
		}
		if err := compare(l); err != nil {
			t.Fatalf("layout %d, %s: %v", i, document.Canonical(d), err)
		}
		again, err := document.Parse(document.Canonical(d))
		if err != nil || string(document.Canonical(again)) != string(document.Canonical(d)) {
			t.Fatalf("layout %d, %s: becomes %s, %v", i, document.Canonical(d), document.Canonical(again), err)
		}
	}
}

type reported struct {
	Arrays map[string]struct {
		Devices []struct {
			MeshIndex int `json:"mesh_index"`
			Process   int
			ID        int
			Index     [][2]int
			Replica   int
			Bytes     int64
			Delivered [][2]int `json:"delivered_index"`
			Received  int64    `json:"received_bytes"`
		}
	}
	Processes []struct {
		Process      int
		Rows         [][2]int
		Bytes        int64 `json:"bytes_per_step"`
		HostBytes    int64 `json:"host_bytes"`
		Interconnect int64 `json:"interconnect_bytes"`
		Network      int64 `json:"network_bytes"`
		SameRowsAs   []int `json:"same_rows_as"`
	}
	Totals map[string]int64
}

func compare(l *layout.Layout) error {
	var report reported
	if err := json.Unmarshal(document.Report(l, document.ReportOptions{}), &report); err != nil {
		return err
	}
	b := brute{l: l, report: &report, rows: map[int]map[int]bool{}, blocks: map[int]map[string]int64{}, moved: map[int]int64{}, remote: map[int]int64{}}
	for i, a := range l.Arrays() {
		if err := b.array(i, a); err != nil {
			return err
		}
	}
	return b.processes()
}

// brute collects what processes read by visiting every device of every array.
type brute struct {
	l      *layout.Layout
	report *reported
	rows   map[int]map[int]bool     // rows of data arrays by process
	blocks map[int]map[string]int64 // bytes of distinct blocks by process
	device int64
	whole  int64
	slots  int64         // slots of all arrays, whole
	moved  map[int]int64 // to the devices of a process
	remote map[int]int64 // to a process
	skip   bool          // an array is too large to look at every element
}

func (b *brute) array(i int, a layout.Array) error {
	indexes, replicas, err := a.Sharding.Map(a.Shape)
	if err != nil {
		return err
	}
	delivered, _, err := a.Delivered.Map(a.Shape)
	if err != nil {
		return err
	}
	if even := b.l.Loading() == layout.LoadReshard && a.Kind != layout.Static; !even && !slices.EqualFunc(delivered, indexes, sharding.Index.Equal) {
		return fmt.Errorf("array %s is delivered as %v, want %v", a.Name, delivered, indexes)
	} else if even {
		if err := b.traffic(a, indexes, delivered); err != nil {
			return err
		}
	}
	var bytes int64
	for position, index := range indexes {
		d := b.l.Mesh().Device(position)
		bytes = int64(a.Type.Size())
		for _, n := range index.Shape() {
			bytes *= int64(n)
		}
		got := b.report.Arrays[a.Name].Devices[position]
		if got.MeshIndex != position || got.Process != d.Process || got.ID != d.ID || !index.Equal(got.Index) || got.Replica != replicas[position] || got.Bytes != bytes {
			return fmt.Errorf("array %s, position %d: reported %+v, want %v replica %d", a.Name, position, got, index, replicas[position])
		}
		if a.Kind != layout.Static {
			b.read(i, a, position, delivered[position])
		}
	}
	b.device += bytes
	if a.Kind != layout.Static {
		b.whole += indexBytes(a, wholeIndex(a))
		b.slots += (indexBytes(a, wholeIndex(a)) + 63) / 64 * 64
	}
	if a.Kind != layout.Static && b.l.Loading() == layout.LoadReshard {
		b.device += indexBytes(a, delivered[0])
	}
	return nil
}

func wholeIndex(a layout.Array) sharding.Index {
	index := make(sharding.Index, len(a.Shape))
	for d, n := range a.Shape {
		index[d][1] = n
	}
	return index
}

func indexBytes(a layout.Array, index sharding.Index) int64 {
	bytes := int64(a.Type.Size())
	for _, n := range index.Shape() {
		bytes *= int64(n)
	}
	return bytes
}

func (b *brute) read(i int, a layout.Array, position int, index sharding.Index) {
	process := b.l.Mesh().Device(position).Process
	if b.rows[process] == nil {
		b.rows[process], b.blocks[process] = map[int]bool{}, map[string]int64{}
	}
	key := fmt.Sprint(i, index)
	if b.l.Loading() == layout.LoadDevice {
		key = fmt.Sprint(i, "of", position)
	}
	b.blocks[process][key] = indexBytes(a, index)
	if b.l.Loading() == layout.LoadGlobal {
		index = wholeIndex(a)
	}
	if a.Kind == layout.Data && !emptyIndex(index[:a.BatchDims]) {
		forEachRow(a.Shape[:a.BatchDims], index, 0, func(row int) { b.rows[process][row] = true })
	}
}

// traffic counts element by element what devices and processes need and do not
// have.
func (b *brute) traffic(a layout.Array, needed, delivered []sharding.Index) error {
	const most = 1 << 14
	if b.skip = b.skip || indexBytes(a, wholeIndex(a)) > most*int64(a.Type.Size()); b.skip {
		return nil
	}
	needs, has := map[int]map[int]bool{}, map[int]map[int]bool{}
	for position := range needed {
		p := b.l.Mesh().Device(position).Process
		if needs[p] == nil {
			needs[p], has[p] = map[int]bool{}, map[int]bool{}
		}
		here := map[int]bool{}
		forEachRow(a.Shape, delivered[position], 0, func(e int) { here[e], has[p][e] = true, true })
		received := int64(0)
		forEachRow(a.Shape, needed[position], 0, func(e int) {
			needs[p][e] = true
			if !here[e] {
				received += int64(a.Type.Size())
			}
		})
		b.moved[p] += received
		if got := b.report.Arrays[a.Name].Devices[position]; got.Received != received || !delivered[position].Equal(got.Delivered) {
			return fmt.Errorf("array %s, position %d: reported %+v, want %d received, delivered %v", a.Name, position, got, received, delivered[position])
		}
	}
	for p := range needs {
		for e := range needs[p] {
			if !has[p][e] {
				b.remote[p] += int64(a.Type.Size())
			}
		}
	}
	return nil
}

func emptyIndex(x sharding.Index) bool { return slices.Contains(x.Shape(), 0) }

func forEachRow(batch []int, index sharding.Index, base int, visit func(row int)) {
	if len(batch) == 0 {
		visit(base)
		return
	}
	for c := index[0][0]; c < index[0][1]; c++ {
		forEachRow(batch[1:], index[1:], base*batch[0]+c, visit)
	}
}

func (b *brute) processes() error {
	var read, host int64
	all := map[int]bool{}
	for n, p := range b.l.Mesh().Processes() {
		var bytes, slots int64
		for _, k := range b.blocks[p] {
			bytes += k
			slots += (k + 63) / 64 * 64
		}
		slots *= int64(b.l.Prefetch() + 1)
		if b.l.Loading() == layout.LoadGlobal {
			bytes, slots = b.whole, slots+b.slots
		}
		read, host = read+bytes, max(host, slots)
		got := b.report.Processes[n]
		if got.HostBytes != slots || !b.skip && (got.Interconnect != b.moved[p] || got.Network != b.remote[p]) {
			return fmt.Errorf("process %d: reported %+v, want %d on the host, %d to devices, %d to the process", p, got, slots, b.moved[p], b.remote[p])
		}
		if got.Process != p || got.Bytes != bytes || len(b.l.Process(p).Blocks) != len(b.blocks[p]) {
			return fmt.Errorf("process %d: reported %+v, want %d bytes in %d blocks", p, got, bytes, len(b.blocks[p]))
		}
		if !sameRows(got.Rows, b.rows[p]) {
			return fmt.Errorf("process %d: rows %v, want %v", p, got.Rows, b.rows[p])
		}
		for row := range b.rows[p] {
			all[row] = true
		}
		for _, q := range b.l.Mesh().Processes() {
			same := q != p && len(b.rows[p]) > 0 && sameRows(got.Rows, b.rows[q])
			if same != slices.Contains(got.SameRowsAs, q) {
				return fmt.Errorf("process %d reads the same rows as %v, and %d: %v", p, got.SameRowsAs, q, same)
			}
		}
		if err := b.holders(b.l.Process(p)); err != nil {
			return err
		}
	}
	if data := slices.ContainsFunc(b.l.Arrays(), func(a layout.Array) bool { return a.Kind == layout.Data }); data && int64(len(all)) != b.l.BatchSize() {
		return fmt.Errorf("all processes read %d of %d rows", len(all), b.l.BatchSize())
	}
	t := b.l.Totals()
	if t.BatchBytes != b.whole || t.ReadBytes != read || t.DeviceBytes != b.device || t.HostBytes != host {
		return fmt.Errorf("totals %+v, want batch %d, read %d, device %d, host %d", t, b.whole, read, b.device, host)
	}
	return nil
}

// sameRows reports whether sorted, merged ranges are exactly these rows.
func sameRows(ranges [][2]int, rows map[int]bool) bool {
	n, last := 0, -1
	for _, r := range ranges {
		if r[0] <= last || r[0] >= r[1] {
			return false // not merged
		}
		last = r[1]
		for row := r[0]; row < r[1]; row++ {
			if !rows[row] {
				return false
			}
			n++
		}
	}
	return n == len(rows)
}

// holders checks that every block names exactly the devices that hold it, in
// mesh order, and that blocks are sorted by array and first holder.
func (b *brute) holders(p layout.Process) error {
	held := map[[2]int]bool{}
	for i, block := range p.Blocks {
		if i > 0 {
			before := p.Blocks[i-1]
			if before.Array > block.Array || before.Array == block.Array && before.Holders[0] > block.Holders[0] {
				return fmt.Errorf("process %d: block %d is not in order", p.Process, i)
			}
		}
		a := b.l.Arrays()[block.Array]
		for _, position := range block.Holders {
			key := [2]int{block.Array, position}
			if held[key] || b.l.Mesh().Device(position).Process != p.Process || !a.Delivered.IndexAt(a.Shape, position).Equal(block.Index) {
				return fmt.Errorf("process %d: position %d does not hold %v of %s", p.Process, position, block.Index, a.Name)
			}
			held[key] = true
		}
		if !slices.IsSorted(block.Holders) {
			return fmt.Errorf("process %d: holders %v", p.Process, block.Holders)
		}
	}
	return nil
}
