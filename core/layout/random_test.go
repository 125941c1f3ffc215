package layout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestRandomLayouts compares layouts with what follows, device by device and
// row by row, from the index map of package sharding.
func TestRandomLayouts(t *testing.T) {
	r, layouts := random.New(t), 150
	if os.Getenv("MESHFEED_DEEP") != "" {
		layouts = 10000
	}
	for i := range layouts {
		d := randomDocument(r)
		l, err := New(d)
		if err != nil {
			t.Fatalf("layout %d, %s: %v", i, d.Canonical(), err)
		}
		if l.Err() != nil {
			t.Fatalf("layout %d, %s: %v", i, d.Canonical(), l.Err())
		}
		if err := compare(l); err != nil {
			t.Fatalf("layout %d, %s: %v", i, d.Canonical(), err)
		}
		again, err := Parse(d.Canonical())
		if err != nil || string(again.Canonical()) != string(d.Canonical()) {
			t.Fatalf("layout %d, %s: becomes %s, %v", i, d.Canonical(), again.Canonical(), err)
		}
		for line := range strings.Lines(l.Text(PictureOptions{})) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Fatalf("layout %d, %s: a line has %d characters: %s", i, d.Canonical(), n, line)
			}
		}
		if err := everyDevice(l); err != nil {
			t.Fatalf("layout %d, %s: %v\n%s", i, d.Canonical(), err, l.Text(PictureOptions{}))
		}
		l.Text(PictureOptions{Width: 20 + r.IntN(80)})
		wellFormed(t, l.SVG(PictureOptions{}))
	}
}

// randomDocument makes a document without errors.
func randomDocument(r *rand.Rand) *Document {
	d := &Document{Batch: &BatchSpec{}}
	size := 1
	for a := range r.IntN(4) {
		n := []int{1, 2, 2, 3, 4}[r.IntN(5)]
		d.Mesh.Axes = append(d.Mesh.Axes, mesh.Axis{Name: string(rune('a' + a)), Size: n})
		size *= n
	}
	for i, id := range r.Perm(size) {
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{Process: i * 4 / size * (1 + r.IntN(2)), ID: id * (1 + id%2)})
	}
	ids := map[int]bool{}
	for i := range d.Mesh.Devices { // ids may repeat after the stretch: make them distinct
		for ids[d.Mesh.Devices[i].ID] {
			d.Mesh.Devices[i].ID++
		}
		ids[d.Mesh.Devices[i].ID] = true
	}
	for range 1 + r.IntN(2) {
		d.Batch.Size = append(d.Batch.Size, size*(1+r.IntN(2)))
	}
	if r.IntN(2) == 0 {
		d.Batch.Remainder = Pad
	}
	if r.IntN(2) == 0 {
		d.Batch.Extras = []string{ExtraRecord, ExtraKey}[:1+r.IntN(2)]
	}
	for i := range 1 + r.IntN(4) {
		d.Arrays = append(d.Arrays, randomArray(r, d, fmt.Sprint("array", i), size))
	}
	d.Dataset = &DatasetSpec{Records: int64(size*size*4 + r.IntN(100))}
	d.Loading = loadings[r.IntN(len(loadings))]
	return d
}

func randomArray(r *rand.Rand, d *Document, name string, size int) ArraySpec {
	types := dtype.All()
	a := ArraySpec{Name: name, Type: types[r.IntN(len(types))], Static: r.IntN(6) == 0}
	rank := r.IntN(3)
	for range rank {
		a.RowShape = append(a.RowShape, size*r.IntN(3))
	}
	if !a.Static {
		rank += len(d.Batch.Size)
	}
	a.Spec = make(sharding.PartitionSpec, r.IntN(rank+1))
	for _, n := range r.Perm(len(d.Mesh.Axes)) {
		if len(a.Spec) > 0 && r.IntN(3) > 0 {
			k := r.IntN(len(a.Spec))
			a.Spec[k] = append(a.Spec[k], d.Mesh.Axes[n].Name)
		}
	}
	return a
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

func compare(l *Layout) error {
	var rep reported
	if err := json.Unmarshal(l.Report(ReportOptions{}), &rep); err != nil {
		return err
	}
	b := brute{l: l, rep: &rep, rows: map[int]map[int]bool{}, blocks: map[int]map[string]int64{}, moved: map[int]int64{}, remote: map[int]int64{}}
	for i, a := range l.Arrays() {
		if err := b.array(i, a); err != nil {
			return err
		}
	}
	return b.processes()
}

// brute holds what processes read by going over every device of every array.
type brute struct {
	l      *Layout
	rep    *reported
	rows   map[int]map[int]bool     // rows of data arrays by process
	blocks map[int]map[string]int64 // bytes of distinct blocks by process
	device int64
	whole  int64
	slots  int64         // of all arrays, whole
	moved  map[int]int64 // to the devices of a process
	remote map[int]int64 // to a process
	skip   bool          // an array is too large to look at every element
}

func (b *brute) array(i int, a Array) error {
	indexes, replicas, err := a.Sharding.Map(a.Shape)
	if err != nil {
		return err
	}
	delivered, _, err := a.Delivered.Map(a.Shape)
	if err != nil {
		return err
	}
	if even := b.l.Loading() == LoadReshard && a.Kind != Static; !even && !slices.EqualFunc(delivered, indexes, sharding.Index.Equal) {
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
		got := b.rep.Arrays[a.Name].Devices[position]
		if got.MeshIndex != position || got.Process != d.Process || got.ID != d.ID || !index.Equal(got.Index) || got.Replica != replicas[position] || got.Bytes != bytes {
			return fmt.Errorf("array %s, position %d: reported %+v, want %v replica %d", a.Name, position, got, index, replicas[position])
		}
		if a.Kind != Static {
			b.read(i, a, position, delivered[position])
		}
	}
	b.device += bytes
	if a.Kind != Static {
		b.whole += arrayBytes(a)
		b.slots += (arrayBytes(a) + 63) / 64 * 64
	}
	if a.Kind != Static && b.l.Loading() == LoadReshard {
		b.device += indexBytes(a, delivered[0])
	}
	return nil
}

func indexBytes(a Array, index sharding.Index) int64 {
	bytes := int64(a.Type.Size())
	for _, n := range index.Shape() {
		bytes *= int64(n)
	}
	return bytes
}

func (b *brute) read(i int, a Array, position int, index sharding.Index) {
	process := b.l.Mesh().Device(position).Process
	if b.rows[process] == nil {
		b.rows[process], b.blocks[process] = map[int]bool{}, map[string]int64{}
	}
	key := fmt.Sprint(i, index)
	if b.l.Loading() == LoadDevice {
		key = fmt.Sprint(i, "of", position)
	}
	b.blocks[process][key] = indexBytes(a, index)
	if b.l.Loading() == LoadGlobal {
		index = whole(a.Shape)
	}
	if a.Kind == Data && !emptyIndex(index[:a.BatchDims]) {
		forEachRow(a.Shape[:a.BatchDims], index, 0, func(row int) { b.rows[process][row] = true })
	}
}

// traffic looks at every element: which of those that a device, and a process,
// needs are not there.
func (b *brute) traffic(a Array, needed, delivered []sharding.Index) error {
	const most = 1 << 14
	if b.skip = b.skip || arrayBytes(a) > most*int64(a.Type.Size()); b.skip {
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
		if got := b.rep.Arrays[a.Name].Devices[position]; got.Received != received || !delivered[position].Equal(got.Delivered) {
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
		if b.l.Loading() == LoadGlobal {
			bytes, slots = b.whole, slots+b.slots
		}
		read, host = read+bytes, max(host, slots)
		got := b.rep.Processes[n]
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
	if data := slices.ContainsFunc(b.l.Arrays(), func(a Array) bool { return a.Kind == Data }); data && int64(len(all)) != b.l.BatchSize() {
		return fmt.Errorf("all processes read %d of %d rows", len(all), b.l.BatchSize())
	}
	t := b.l.Totals()
	if t.BatchBytes != b.whole || t.ReadBytes != read || t.DeviceBytes != b.device || t.HostBytes != host {
		return fmt.Errorf("totals %+v, want batch %d, read %d, device %d, host %d", t, b.whole, read, b.device, host)
	}
	return nil
}

// sameRows says whether sorted, merged ranges are just these rows.
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

// holders checks that every block names just the devices that hold it, in mesh
// order, and that blocks stand by array and first holder.
func (b *brute) holders(p Process) error {
	held := map[[2]int]bool{}
	for i, block := range p.Blocks {
		if i > 0 {
			before := p.Blocks[i-1]
			if before.Array > block.Array || before.Array == block.Array && before.Holders[0] > block.Holders[0] {
				return fmt.Errorf("process %d: block %d stands before its turn", p.Process, i)
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

// everyDevice checks that each device of a small mesh stands in just one cell
// of the drawing of every array, among those that hold the same.
func everyDevice(l *Layout) error {
	for i, a := range l.arrays {
		seen := make([]bool, l.mesh.Size())
		g := l.gridOf(l.holders(i), nil, roomy, false)
		for r, line := range g.cells {
			for c, cell := range line {
				for _, part := range cell.parts {
					for _, position := range part {
						if seen[position] || !a.Sharding.IndexAt(a.Shape, int(position)).Equal(a.Sharding.IndexAt(a.Shape, int(part[0]))) {
							return fmt.Errorf("array %s, cell %d, %d: position %d is out of place", a.Name, r, c, position)
						}
						seen[position] = true
					}
				}
			}
		}
		if slices.Contains(seen, false) {
			return fmt.Errorf("array %s: of the devices %v some are not drawn", a.Name, seen)
		}
	}
	return nil
}
