//go:build cgo && (linux || darwin)

package xla

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// givenPlugin names a plugin whose hardware is here: make gpu-check-go.
const givenPlugin = "MESHFEED_PJRT_PLUGIN"

// fetched is where make leaves plugins.
const fetched = "../../../.build/plugins"

// realPlugins gives the specifications of plugins that compute: the one that a
// person names, or XLA's for CPUs, in both ways of placing.
func realPlugins(t *testing.T) []string {
	t.Helper()
	if path := os.Getenv(givenPlugin); path != "" {
		return []string{"xla:" + path}
	}
	path := fetchedPlugin(t, "cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "make plugin-cpu")
	return []string{"xla:" + path + "?devices=8", "xla:" + path + "?devices=8&shared=false"}
}

func fetchedPlugin(t *testing.T, name, command string) string {
	t.Helper()
	if os.Getenv("MESHFEED_DEEP") != "1" {
		t.Skip("a deep test of real plugins: MESHFEED_DEEP=1")
	}
	path, err := filepath.Abs(filepath.Join(fetched, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("NOT TESTED: %s is not there; fetch it with: %s", path, command)
	}
	return path
}

// TestRealPlugins runs everything that a plugin is needed for on real ones.
func TestRealPlugins(t *testing.T) {
	for _, spec := range realPlugins(t) {
		for _, part := range []struct {
			name string
			run  func(t *testing.T, spec string)
		}{
			{"worlds", testWorlds}, {"device orders", testDeviceOrders}, {"growth", testGrowth},
		} {
			t.Run(part.name+" "+filepath.Base(spec), func(t *testing.T) {
				before := os.Environ()
				part.run(t, spec)
				if after := os.Environ(); !slices.Equal(after, before) {
					t.Errorf("the environment is now %v", after)
				}
				if alive := pjrt.BuffersAlive(); alive != 0 {
					t.Errorf("go-xla has %d buffers", alive)
				}
			})
		}
	}
}

// TestRealPluginsAreQuiet runs a part of TestRealPlugins in two processes at
// the same time and listens to their standard error.
func TestRealPluginsAreQuiet(t *testing.T) {
	realPlugins(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said [2]strings.Builder
	var runs [2]*exec.Cmd
	for i := range runs {
		runs[i] = exec.Command(self, "-test.run=^TestRealPlugins$/^device_orders")
		runs[i].Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "TF_CPP_MIN_LOG_LEVEL=") })
		runs[i].Stderr = &said[i]
		if err := runs[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, run := range runs {
		if err := run.Wait(); err != nil || said[i].Len() > 0 {
			t.Errorf("process %d: %v, standard error %q", i, err, said[i].String())
		}
	}
}

// TestWithoutCgo runs this package's tests as they are without cgo.
func TestWithoutCgo(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") != "1" {
		t.Skip("a deep test, because it compiles GoMLX once more: MESHFEED_DEEP=1")
	}
	cmd := exec.Command("go", "test", "-run", "^TestUnsupported$", "-v", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(said, []byte("--- PASS: TestUnsupported")) {
		t.Errorf("%v\n%s", err, said)
	}
}

func closed(t *testing.T, d *gomlxfeed.Devices) {
	t.Helper()
	if n, size := d.Live(); n != 0 || size != 0 {
		t.Errorf("%d buffers of %d bytes are live", n, size)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// testWorlds places batches of random layouts on permuted devices and compares
// every shard with a formula, byte by byte.
func testWorlds(t *testing.T, spec string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := opened(t, spec)
	t.Logf("%s: %d devices, shared %v, %s", d.Name(), d.Num(), d.Shared(), d.Describe(0))
	for range 200 {
		oneWorld(t, r, d)
	}
	closed(t, d)
}

func oneWorld(t *testing.T, r *rand.Rand, d *gomlxfeed.Devices) {
	t.Helper()
	src, lay := randomWorld(r, d.Num())
	ring, err := d.Ring(lay)
	if err != nil {
		t.Fatal(err)
	}
	o := loader.Options{Layout: lay, Shuffle: true, Seed: r.Int64N(1000), Epochs: 1}
	if r.IntN(3) > 0 {
		o.Allocator = ring
	}
	l, err := loader.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range gomlxfeed.Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		compare(t, l, o.Seed, b)
		b.Release()
	}
	for _, err := range []error{l.Close(), ring.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

func compare(t *testing.T, l *loader.Loader, seed int64, b *gomlxfeed.Batch) {
	t.Helper()
	records, err := l.Records(b.Place().Cursor)
	if err != nil {
		t.Fatal(err)
	}
	lay, from := l.Layout(), synthetic.Batch{Records: records, Seed: seed, Epoch: b.Place().Epoch}
	for _, a := range lay.Arrays() {
		for i, shard := range b.Tensor(a.Name).Shards() {
			want := synthetic.Expect(a, a.Delivered.IndexAt(a.Shape, i), from)
			got := make([]byte, len(want))
			if err := b.Read(a.Name, i, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("array %q, position %d: got %x, want %x (%v)\n%s", a.Name, i, got, want, err, lay.Document().Canonical())
			}
			if on, err := shard.Device(); err != nil || on != compute.DeviceNum(lay.Mesh().Device(i).ID) {
				t.Fatalf("position %d of %s is on device %d (%v)", i, lay.Mesh(), on, err)
			}
		}
	}
}

// randomWorld draws a dataset and a layout of it over some of the devices.
func randomWorld(r *rand.Rand, devices int) (source.Source, *layout.Layout) {
	rows := max(1, devices/2)
	if r.IntN(2) == 0 {
		rows = devices
	}
	columns := devices / rows
	doc := &layout.Document{
		Mesh:  layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: rows}, {Name: "model", Size: columns}}},
		Batch: &layout.BatchSpec{Size: []int{rows * columns * (1 + r.IntN(3))}, Remainder: []string{layout.Drop, layout.Pad}[r.IntN(2)]},
	}
	for _, id := range r.Perm(devices)[:rows*columns] {
		doc.Mesh.Devices = append(doc.Mesh.Devices, mesh.Device{ID: id})
	}
	specs := []sharding.PartitionSpec{sharding.P("data"), sharding.P("data", "model"), sharding.P(nil, "model"), sharding.P([]string{"model", "data"}), nil}
	var fields []source.Field
	for i := range 1 + r.IntN(3) {
		f := source.Field{Name: fmt.Sprintf("f%d", i), Type: dtype.All()[r.IntN(len(dtype.All()))], Shape: []int{columns * (1 + r.IntN(20)), 1 + r.IntN(3)}}
		fields = append(fields, f)
		doc.Arrays = append(doc.Arrays, layout.ArraySpec{Name: f.Name, Type: f.Type, RowShape: f.Shape, Spec: specs[r.IntN(len(specs))]})
	}
	lay, err := layout.New(doc)
	if err != nil {
		panic(err)
	}
	return synthetic.New(int64(lay.BatchSize())*2+r.Int64N(20), fields...), lay
}

const depth, width = 64, 32 // of the program's matrices

// program is a layer of a network, and sums over the batch, which cross devices.
func program(x, w *graph.Node) (*graph.Node, *graph.Node) {
	y := graph.Tanh(graph.Dot(x, w).Product())
	return y, graph.ReduceSum(y, 0)
}

// testDeviceOrders runs a sharded program over rotated orders of all devices,
// and compares with the pure-Go devices.
func testDeviceOrders(t *testing.T, spec string) {
	d := opened(t, spec)
	if d.Num() < 2 || d.Num()%2 > 0 {
		closed(t, d)
		t.Skipf("%s has %d devices: sharding needs an even number", d.Name(), d.Num())
	}
	reference := opened(t, "virtual:"+strconv.Itoa(d.Num()))
	for by := range d.Num() {
		got, want := sharded(t, d, by), sharded(t, reference, by)
		for i := range want {
			if off := furthest(got[i], want[i]); !(off < 1e-5) {
				t.Errorf("rotated by %d: output %d differs by %g", by, i, off)
			}
		}
	}
	closed(t, reference)
	closed(t, d)
}

func furthest(a, b []float32) (most float64) {
	if len(a) != len(b) || len(a) == 0 {
		return math.NaN()
	}
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

// sharded feeds one batch through the program, rows over axis data, columns of
// w over axis model, with the device order rotated.
func sharded(t *testing.T, d *gomlxfeed.Devices, by int) [][]float32 {
	t.Helper()
	n := d.Num()
	doc := &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: n / 2}, {Name: "model", Size: 2}}},
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{depth}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "w", RowShape: []int{width}, Type: dtype.Float32, Spec: sharding.P(nil, "model")},
		},
		Batch: &layout.BatchSpec{Size: []int{depth}},
	}
	for i := range n {
		doc.Mesh.Devices = append(doc.Mesh.Devices, mesh.Device{ID: (i + by) % n})
	}
	lay, err := layout.New(doc)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(waves(t), loader.Options{Layout: lay, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var values [][]float32
	for b, err := range gomlxfeed.Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		values = computed(t, d, lay, b)
		b.Release()
	}
	return values
}

func waves(t *testing.T) source.Source {
	t.Helper()
	x, w := make([]float32, depth*depth), make([]float32, depth*width)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*0.37)) / 8
	}
	for i := range w {
		w[i] = float32(math.Cos(float64(i)*0.73)) / 8
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, depth), arrowio.Slice("w", w, width))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// computed runs the program and gives its outputs whole, checking where their
// shards are.
func computed(t *testing.T, d *gomlxfeed.Devices, lay *layout.Layout, b *gomlxfeed.Batch) (values [][]float32) {
	t.Helper()
	logical, assignment, err := gomlxfeed.Mesh(lay.Mesh(), d)
	if err != nil {
		t.Fatal(err)
	}
	y, err := gomlxfeed.ShardingSpec(logical, sharding.P("data", "model"), 2)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := gomlxfeed.ShardingSpec(logical, sharding.P("model"), 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := graph.NewExec(d.Backend(), program)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	x, w := b.Tensor("x"), b.Tensor("w")
	e.AutoSharding(logical).WithDeviceAssignment(assignment).WithOutputShardingSpecs(y, sums).
		WithInputShardingSpecs([]*distributed.ShardingSpec{x.ShardingSpec(), w.ShardingSpec()}...)
	out, err := e.DistributedCall(x, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		values = append(values, whole(t, o, assignment))
	}
	return values
}

func whole(t *testing.T, o *dtensor.Tensor, assignment []compute.DeviceNum) []float32 {
	t.Helper()
	for i, shard := range o.Shards() {
		if on, err := shard.Device(); err != nil || on != assignment[i] {
			t.Errorf("output shard %d is on device %d, not %d (%v)", i, on, assignment[i], err)
		}
	}
	merged, err := o.Merge()
	if err != nil {
		t.Fatal(err)
	}
	values, err := tensors.CopyFlatData[float32](merged)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{merged.FinalizeAll(), o.Finalize()} {
		if err != nil {
			t.Error(err)
		}
	}
	return values
}

// TestRealTraining fits a line with the trainer, which leaves buffers of its own
// to the collector.
func TestRealTraining(t *testing.T) {
	for _, spec := range realPlugins(t) {
		t.Run(filepath.Base(spec), func(t *testing.T) { testTraining(t, spec) })
	}
}

func testTraining(t *testing.T, spec string) {
	d := opened(t, spec)
	r := rand.New(rand.NewPCG(7, 7))
	x, y := make([]float32, 2*256), make([]float32, 256)
	for i := range y {
		x[2*i], x[2*i+1] = r.Float32(), r.Float32()
		y[i] = 3*x[2*i] - 2*x[2*i+1] + 0.5
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, 2), arrowio.Slice("y", y, 1))
	if err != nil {
		t.Fatal(err)
	}
	lay, err := layout.New(&layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: d.Num()}}},
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{2}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "y", RowShape: []int{1}, Type: dtype.Float32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{64 / d.Num() * d.Num()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true})
	if err != nil {
		t.Fatal(err)
	}
	store := model.NewStore()
	trainer := train.NewTrainer(d.Backend(), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(s.In("dense"), x, true, 1)
	}, loss.MeanSquaredError, optimizer.Adam().LearningRate(0.1).Done(), nil, nil)
	metrics, err := train.NewLoop(trainer).RunSteps(dataset(t, l, d), 400)
	if err != nil {
		t.Fatal(err)
	}
	if off := metrics[0].Value().(float32); !(off < 0.01) {
		t.Errorf("the loss is %g after 400 steps", off)
	}
	for _, m := range metrics {
		_ = m.FinalizeAll()
	}
	store.Finalize()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	closed(t, d)
}

func dataset(t *testing.T, l *loader.Loader, d *gomlxfeed.Devices) train.Dataset {
	t.Helper()
	o := gomlxfeed.DatasetOptions{Inputs: []string{"x"}, Labels: []string{"y"}}
	if d.Num() == 1 {
		ds, err := gomlxfeed.NewDataset(l, d, o)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds, err := gomlxfeed.NewDistributedDataset(l, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// testGrowth places 10,000 batches of 1.5 MiB and looks at the memory.
func testGrowth(t *testing.T, spec string) {
	d := opened(t, spec)
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: d.Num()}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{32, 32, 3}, Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{128 / d.Num() * d.Num()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := d.Ring(lay)
	if err != nil {
		t.Fatal(err)
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", make([]float32, 1024*32*32*3), 32, 32, 3))
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Allocator: ring, Epochs: -1})
	if err != nil {
		t.Fatal(err)
	}
	const batches = 10_000
	placed, early := 0, 0
	for b, err := range gomlxfeed.Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if placed++; placed == batches/10 {
			early = resident(t)
		}
		if placed == batches {
			break
		}
	}
	if late := resident(t); late > early+32 {
		t.Errorf("resident memory grew from %d to %d MiB between batch %d and %d", early, late, batches/10, batches)
	}
	for _, err := range []error{l.Close(), ring.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	closed(t, d)
}

// resident gives the resident memory of this process in MiB, and 0 where the
// system does not tell.
func resident(t *testing.T) int {
	t.Helper()
	status, _ := os.ReadFile("/proc/self/status")
	_, after, found := strings.Cut(string(status), "VmRSS:")
	if !found {
		return 0
	}
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
