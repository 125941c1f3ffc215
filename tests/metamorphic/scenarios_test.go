package metamorphic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/random"
)

// scene is a common kind of topology, with guarantees beyond what every topology has.
type scene struct {
	name  string
	draw  func(r *rand.Rand) plan
	claim func(t *testing.T, u run)
}

// plan is a mesh and the spec of its arrays.
type plan struct {
	axes    []mesh.Axis
	owners  []int // process of each device, in mesh order
	image   sharding.PartitionSpec
	tokens  sharding.PartitionSpec
	columns [][2]int
}

const (
	imageSize = 24
	tokens    = 97 // inputs are the first 96, targets the last
)

func scenes() []scene {
	return []scene{
		{"data parallel", dataParallel, claimDisjoint},
		{"replicas inside processes", replicasNear, claimDisjoint},
		{"replicas across processes", replicasFar, claimGroups},
		{"full replication", fullReplication, claimAllRows},
		{"columns across processes", columnsFar, claimAllRows},
		{"sequences across processes", sequencesFar, claimAllRows},
		{"zigzag sequences", zigzag, claimAllRows},
		{"permuted devices", permuted, nil},
		{"scattered rows", scattered, claimScattered},
		{"some processes hold none", someHoldNone, claimDisjoint},
		{"different counts", differentCounts, claimDisjoint},
	}
}

// TestScenes plays every scene on several clusters, with all processes.
func TestScenes(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			random.Rounds(t, 12, 100, func(t *testing.T, r *rand.Rand) { testScene(t, s, r) })
		})
	}
}

func testScene(t *testing.T, s scene, r *rand.Rand) {
	p := s.draw(r)
	w, u := p.workload(t, r, p.devices(r))
	t.Logf("%v\n%v", w, u)
	if s.claim != nil {
		s.claim(t, u)
	}
	(&player{t: t, w: w}).play(u, batch.Cursor{}, 2)
}

// devices assigns sparse ids to devices and sparse numbers to processes.
func (p plan) devices(r *rand.Rand) []mesh.Device {
	step, ids := 1+r.IntN(3), r.Perm(5*len(p.owners))
	list := make([]mesh.Device, len(p.owners))
	for i, owner := range p.owners {
		list[i] = mesh.Device{Process: step * owner, ID: ids[i]}
	}
	return list
}

// workload creates a dataset of images, sequences and labels, and the run on it.
func (p plan) workload(t *testing.T, r *rand.Rand, devices []mesh.Device) (*workload, run) {
	t.Helper()
	rows := sharding.PartitionSpec{{"data"}}
	d := &layout.Document{
		Mesh: layout.MeshSpec{Axes: p.axes, Devices: devices},
		Arrays: []layout.ArraySpec{
			{Name: "image", Field: "image", Type: dtype.Float32, RowShape: []int{imageSize, imageSize}, Spec: p.image},
			{Name: "label", Field: "label", Type: dtype.Int32, Spec: rows},
			{Name: "inputs", Field: "tokens", Type: dtype.Int32, RowShape: []int{tokens - 1}, Spec: p.tokens, Columns: p.columns},
			{Name: "targets", Field: "tokens", Type: dtype.Int32, RowShape: []int{tokens - 1}, Spec: p.tokens, Columns: [][2]int{{1, tokens}}},
		},
		Batch: &layout.BatchSpec{Size: []int{2 * len(devices)}, Remainder: random.One(r, layout.Drop, layout.Pad)},
	}
	if len(p.image) == 0 {
		d.Arrays[1].Spec = nil
	}
	if p.columns == nil {
		d.Arrays[2].Columns = [][2]int{{0, tokens - 1}}
	}
	lay, err := layout.Draft(d)
	if err == nil {
		err = lay.Err()
	}
	if err != nil {
		t.Fatalf("%s: %v", document.Canonical(d), err)
	}
	return &workload{
		r: r, records: lay.BatchSize()*2 + r.Int64N(lay.BatchSize()), order: "shuffle.1", seed: r.Int64N(1 << 40),
		fields: []source.Field{
			{Name: "image", Type: dtype.Float32, Shape: []int{imageSize, imageSize}},
			{Name: "label", Type: dtype.Int32},
			{Name: "tokens", Type: dtype.Int32, Shape: []int{tokens}},
		},
	}, run{doc: d, lay: lay, prefetch: r.IntN(4), workers: 1 + r.IntN(2)}
}

// blocks assigns devices to processes in runs of equal length.
func blocks(processes, each int) []int {
	owners := make([]int, processes*each)
	for i := range owners {
		owners[i] = i / each
	}
	return owners
}

func cluster(r *rand.Rand) (processes, each int) {
	return []int{2, 4, 6, 8}[r.IntN(4)], []int{1, 2, 4}[r.IntN(3)]
}

func axes(names string, sizes ...int) []mesh.Axis {
	full := map[byte]string{'d': "data", 'm': "model", 's': "seq"}
	list := make([]mesh.Axis, len(sizes))
	for i, n := range sizes {
		list[i] = mesh.Axis{Name: full[names[i]], Size: n}
	}
	return list
}

var byRows = sharding.PartitionSpec{{"data"}}

func dataParallel(r *rand.Rand) plan {
	n, each := cluster(r)
	return plan{axes: axes("d", n*each), owners: blocks(n, each), image: byRows, tokens: byRows}
}

func replicasNear(r *rand.Rand) plan {
	n, each := cluster(r)
	return plan{axes: axes("dm", n, each), owners: blocks(n, each), image: byRows, tokens: byRows}
}

// replicasFar puts the replicas of a row into processes p and p + n/2.
func replicasFar(r *rand.Rand) plan {
	n, each := cluster(r)
	return plan{axes: axes("md", 2, n*each/2), owners: blocks(n, each), image: byRows, tokens: byRows}
}

func fullReplication(r *rand.Rand) plan {
	n, each := cluster(r)
	return plan{axes: axes("dm", n, each), owners: blocks(n, each)}
}

func columnsFar(r *rand.Rand) plan {
	n, each := cluster(r)
	spec := sharding.PartitionSpec{{"data"}, nil, {"model"}}
	return plan{axes: axes("md", n, each), owners: blocks(n, each), image: spec, tokens: byRows}
}

func sequencesFar(r *rand.Rand) plan {
	n, each := cluster(r)
	spec := sharding.PartitionSpec{{"data"}, {"seq"}}
	return plan{axes: axes("sd", n, each), owners: blocks(n, each), image: byRows, tokens: spec}
}

// zigzag cuts the sequence into 2n parts. Each process gets one part from the
// front and its mirror from the back.
func zigzag(r *rand.Rand) plan {
	p := sequencesFar(r)
	n := p.axes[0].Size
	for i := range n {
		a, b := i*(tokens-1)/n/2, (i+1)*(tokens-1)/n/2
		p.columns = append(p.columns, [2]int{a, b}, [2]int{tokens - 1 - b, tokens - 1 - a})
	}
	return p
}

func permuted(r *rand.Rand) plan {
	n, each := cluster(r)
	p := plan{axes: axes("dm", n*each/2, 2), image: sharding.PartitionSpec{{"data"}, nil, {"model"}}}
	p.tokens = sharding.PartitionSpec{{"model", "data"}}
	for _, i := range r.Perm(n * each) {
		p.owners = append(p.owners, i/each)
	}
	return p
}

// scattered assigns devices to processes in turn.
func scattered(r *rand.Rand) plan {
	p := dataParallel(r)
	n := slices.Max(p.owners) + 1
	for i := range p.owners {
		p.owners[i] = i % n
	}
	return p
}

// someHoldNone returns a plan in which every other process of the cluster has no
// device of the mesh.
func someHoldNone(r *rand.Rand) plan {
	p := dataParallel(r)
	for i := range p.owners {
		p.owners[i] = 2*p.owners[i] + 1
	}
	return p
}

func differentCounts(r *rand.Rand) plan {
	p := dataParallel(r)
	owner := 0
	for i := range p.owners {
		p.owners[i] = owner
		owner += r.IntN(2)
	}
	return p
}

// claimDisjoint promises that no two processes read the same row.
func claimDisjoint(t *testing.T, u run) {
	taken := map[int]int{}
	for _, p := range u.lay.Mesh().Processes() {
		for _, row := range rowsOf(u, p) {
			if q, ok := taken[row]; ok {
				t.Fatalf("processes %d and %d read row %d", q, p, row)
			}
			taken[row] = p
		}
	}
}

// claimGroups promises that processes i and i + n/2 read the same rows, and no
// others do.
func claimGroups(t *testing.T, u run) {
	list := u.lay.Mesh().Processes()
	for i, p := range list {
		for j, q := range list {
			same := slices.Equal(rowsOf(u, p), rowsOf(u, q))
			if want := i%(len(list)/2) == j%(len(list)/2); same != want {
				t.Fatalf("processes %d and %d read the same rows: %v, want %v", p, q, same, want)
			}
		}
	}
}

// claimAllRows promises that every process reads every row.
func claimAllRows(t *testing.T, u run) {
	for _, p := range u.lay.Mesh().Processes() {
		if n := len(rowsOf(u, p)); int64(n) != u.lay.BatchSize() {
			t.Fatalf("process %d reads %d rows", p, n)
		}
	}
}

// claimScattered promises that every device's rows are a separate run.
func claimScattered(t *testing.T, u run) {
	for _, p := range u.lay.Mesh().Processes() {
		if got, want := len(u.lay.Process(p).Rows), len(u.lay.Mesh().Local(p)); got != want {
			t.Fatalf("the rows of process %d are %d runs, want %d", p, got, want)
		}
	}
}

// TestTPUOrders plays JAX's meshes of TPU slices, as recorded by
// tests/distributed/tpu_orders.py.
func TestTPUOrders(t *testing.T) {
	text, err := os.ReadFile("../distributed/testdata/tpu_orders.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Orders []struct {
			Slice   string   `json:"slice"`
			Shape   []int    `json:"shape"`
			Devices [][2]int `json:"devices"`
		} `json:"orders"`
	}
	if err := json.Unmarshal(text, &table); err != nil || len(table.Orders) < 50 {
		t.Fatalf("%d orders: %v", len(table.Orders), err)
	}
	for i, o := range table.Orders {
		t.Run(fmt.Sprintf("%s as %v", o.Slice, o.Shape), func(t *testing.T) {
			r := random.From(uint64(i))
			devices := make([]mesh.Device, len(o.Devices))
			for j, d := range o.Devices {
				devices[j] = mesh.Device{Process: d[0], ID: d[1]}
			}
			p := plan{axes: axes("dms", o.Shape...), image: byRows, tokens: byRows}
			if len(o.Shape) > 1 && imageSize%o.Shape[1] == 0 {
				p.image = sharding.PartitionSpec{{"data"}, nil, {"model"}}
			}
			w, u := p.workload(t, r, devices)
			(&player{t: t, w: w}).play(u, batch.Cursor{}, 1)
		})
	}
}
