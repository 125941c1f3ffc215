//go:build cgo && (linux || darwin)

package xla

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// givenPlugin is the environment variable with the path of a plugin for hardware that is
// present. The target gpu-check-go of the Makefile requires it.
const givenPlugin = "MESHFEED_PJRT_PLUGIN"

// pluginFolder is the folder where the Makefile downloads plugins.
const pluginFolder = "../../../.build/plugins"

// realPlugins returns specifications of real plugins: the plugin of givenPlugin if it is
// set, else XLA's plugin for CPUs, with shared memory and without.
func realPlugins(t *testing.T) []string {
	t.Helper()
	if path := os.Getenv(givenPlugin); path != "" {
		return []string{"xla:" + path}
	}
	path := fetchedPlugin(t, "cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "make plugin-cpu")
	return []string{"xla:" + path + "?devices=8", "xla:" + path + "?devices=8&shared=false"}
}

// fetchedPlugin returns the path of a downloaded plugin. Without one, the test is skipped
// and names the command that downloads it.
func fetchedPlugin(t *testing.T, name, command string) string {
	t.Helper()
	if os.Getenv("MESHFEED_DEEP") != "1" {
		t.Skip("a deep test of real plugins: MESHFEED_DEEP=1")
	}
	path, err := filepath.Abs(filepath.Join(pluginFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("NOT TESTED: %s is not there; fetch it with: %s", path, command)
	}
	return path
}

// TestRealPlugins runs three tests on each real plugin. They restore the
// environment and free all buffers.
func TestRealPlugins(t *testing.T) {
	for _, spec := range realPlugins(t) {
		for _, part := range []struct {
			name string
			run  func(t *testing.T, spec string)
		}{
			{"random layouts", testRandomLayouts}, {"device orders", testDeviceOrders}, {"growth", testGrowth},
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

// TestRealPluginsAreQuiet runs one test of TestRealPlugins in two processes at the
// same time and checks that their standard error is empty.
func TestRealPluginsAreQuiet(t *testing.T) {
	realPlugins(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr [2]strings.Builder
	var runs [2]*exec.Cmd
	for i := range runs {
		runs[i] = exec.Command(self, "-test.run=^TestRealPlugins$/^device_orders")
		runs[i].Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "TF_CPP_MIN_LOG_LEVEL=") })
		runs[i].Stderr = &stderr[i]
		if err := runs[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, run := range runs {
		if err := run.Wait(); err != nil || stderr[i].Len() > 0 {
			t.Errorf("process %d: %v, standard error %q", i, err, stderr[i].String())
		}
	}
}

// TestWithoutCgo runs TestUnsupported, this package's only test without cgo.
func TestWithoutCgo(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") != "1" {
		t.Skip("a deep test, because it compiles GoMLX once more: MESHFEED_DEEP=1")
	}
	cmd := exec.Command("go", "test", "-run", "^TestUnsupported$", "-v", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(output, []byte("--- PASS: TestUnsupported")) {
		t.Errorf("%v\n%s", err, output)
	}
}

// closed checks that no buffers are live, and closes the devices.
func closed(t *testing.T, d *gomlxfeed.Devices) {
	t.Helper()
	if n, size := d.Live(); n != 0 || size != 0 {
		t.Errorf("%d buffers of %d bytes are live", n, size)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// testRandomLayouts places batches of random layouts on permuted devices and compares
// every shard with a formula, byte by byte.
func testRandomLayouts(t *testing.T, spec string) {
	r := random.New(t)
	d := opened(t, spec)
	t.Logf("%s: %d devices, shared %v, %s", d.Name(), d.Num(), d.Shared(), d.Describe(0))
	for range 200 {
		testRandomLayout(t, r, d)
	}
	closed(t, d)
}

func testRandomLayout(t *testing.T, r *rand.Rand, d *gomlxfeed.Devices) {
	t.Helper()
	src, lay := randomLayout(r, d.Num())
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
	records, err := l.Records(b.Step().Cursor)
	if err != nil {
		t.Fatal(err)
	}
	lay, from := l.Layout(), synthetic.Batch{Records: records, Seed: seed, Epoch: b.Step().Epoch}
	for _, a := range lay.Arrays() {
		for i, shard := range b.Tensor(a.Name).Shards() {
			want := synthetic.Expect(a, a.Delivered.IndexAt(a.Shape, i), from)
			got := make([]byte, len(want))
			if err := b.Read(a.Name, i, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("array %q, position %d: got %x, want %x (%v)\n%s", a.Name, i, got, want, err, document.Canonical(lay.Document()))
			}
			if on, err := shard.Device(); err != nil || on != compute.DeviceNum(lay.Mesh().Device(i).ID) {
				t.Fatalf("position %d of %s is on device %d (%v)", i, lay.Mesh(), on, err)
			}
		}
	}
}

// randomLayout draws a layout over some of the devices, and a dataset for it.
func randomLayout(r *rand.Rand, devices int) (source.Source, *layout.Layout) {
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
