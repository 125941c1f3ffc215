//go:build cgo && (linux || darwin)

package xla

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

func opened(t *testing.T, spec string, o ...gomlxfeed.OpenOptions) *gomlxfeed.Devices {
	t.Helper()
	d, err := gomlxfeed.Open(context.Background(), spec, o...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpen(t *testing.T) {
	cases := []struct {
		settings, query string
		name            string
		devices         int
		shared          bool
		options         []string
	}{
		{"", "", "xla-cpu", 2, true, nil},
		{"", "?devices=5", "xla-cpu", 5, true, []string{"option cpu_device_count int64 5"}},
		{"", "?devices=3&shared=false", "xla-cpu", 3, false, []string{"option cpu_device_count int64 3"}},
		{"null=PJRT_Client_CreateViewOfDeviceBuffer", "", "xla-cpu", 2, false, nil},
		{"ids=sparse;devices=4", "", "xla-cpu", 4, true, nil},
		{"platform=cuda;attribute=cuda_version", "?devices=2", "xla-cuda", 2, false, []string{"option preallocate bool 0"}},
		{"platform=gpu", "", "xla-cuda", 2, false, []string{"option preallocate bool 0"}},
		{"platform=cuda;attribute=cuda_version;devices=1", "?visible_devices=3,0&memory_fraction=0.25", "xla-cuda", 1, false,
			[]string{"option memory_fraction float 0.25", "option preallocate bool 0", "option visible_devices list 3 0"}},
		{"platform=tpu;devices=8", "?devices=8", "xla-tpu", 8, false, nil},
		{"platform=Neuron;ids=same;devices=1", "", "xla-neuron", 1, false, nil},
	}
	for _, preflight := range []bool{true, false} {
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s %s %v", c.settings, c.query, preflight), func(t *testing.T) {
				path := fake(t, c.settings)
				events := record(t)
				d := opened(t, "xla:"+path+c.query, gomlxfeed.OpenOptions{NoPreflight: !preflight})
				if d.Name() != c.name || d.Num() != c.devices || d.Shared() != c.shared {
					t.Errorf("opened %s with %d devices, shared %v", d.Name(), d.Num(), d.Shared())
				}
				if want := fmt.Sprintf("FAKE_%d [processId=0]", c.devices-1); d.Describe(c.devices-1) != want {
					t.Errorf("the last device is %q", d.Describe(c.devices-1))
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				sent := only(events(false), "option")
				slices.Sort(sent)
				want := c.options
				if preflight && d.Name() == "xla-cpu" { // what was found is asked for
					want = []string{fmt.Sprintf("option cpu_device_count int64 %d", c.devices)}
				}
				if !slices.Equal(slices.Compact(sent), want) {
					t.Errorf("options %q, not %q", sent, want)
				}
				checkBalance(t, events(false))
				if preflight {
					checkBalance(t, events(true))
				}
			})
		}
	}
}

func checkBalance(t *testing.T, events []string) {
	t.Helper()
	for what, left := range balance(events) {
		if left != 0 {
			t.Errorf("%d of %s are left:\n%s", left, what, strings.Join(events, "\n"))
		}
	}
	if len(events) == 0 {
		t.Error("nothing was recorded")
	}
	if alive := pjrt.BuffersAlive(); alive != 0 {
		t.Errorf("go-xla has %d buffers", alive)
	}
}

func TestProbeTriesBothWaysOnEveryDevice(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"transfer+ device 0 bytes 24", "view+ device 0 bytes 24", "transfer+ device 1 bytes 24", "view+ device 1 bytes 24"}},
		{"?shared=false", []string{"transfer+ device 0 bytes 24", "transfer+ device 1 bytes 24"}},
	} {
		path := fake(t, "")
		events := record(t)
		t.Setenv("TPU_SKIP_MDS_QUERY", "1") // Probe runs in a child and may change its environment
		facts, err := opener{}.Probe(context.Background(), spec(t, "xla:"+path+c.query), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		made := slices.DeleteFunc(events(false), func(e string) bool { return !strings.Contains(e, "+ device") })
		if got := made[:len(c.want)]; !slices.Equal(got, c.want) {
			t.Errorf("probing placed %q", got)
		}
		want := gomlxfeed.Facts{Name: "xla-cpu", Platform: "cpu", API: "PJRT 0.104", Shared: c.query == "", Devices: []string{"FAKE_0", "FAKE_1"}, DTypes: dtype.All()}
		if !reflect.DeepEqual(facts, want) {
			t.Errorf("got  %+v\nwant %+v", facts, want)
		}
	}
}

// Open returns the element types that the trial could place.
func TestTriedTypesAreKept(t *testing.T) {
	tried := []dtype.Type{dtype.Float32}
	facts := &gomlxfeed.Facts{Name: "xla-cpu", Platform: "cpu", Devices: []string{"FAKE_0", "FAKE_1"}, DTypes: tried}
	o, err := opener{}.Open(context.Background(), spec(t, "xla:"+fake(t, "")), facts)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Backend.Finalize()
	if !slices.Equal(o.DTypes, tried) {
		t.Errorf("got %v, want %v", o.DTypes, tried)
	}
}

// TestPathSaysNothing opens plugins in folders with names that mislead go-xla.
func TestPathSaysNothing(t *testing.T) {
	for _, c := range []struct{ folder, settings, name string }{
		{"nvidia_cuda", "", "xla-cpu"},
		{"gpu", "", "xla-cpu"},
		{"cpu", "platform=cuda;attribute=cuda_version", "xla-cuda"},
		{"cpu,cuda", "platform=tpu", "xla-tpu"},
	} {
		from := fake(t, c.settings)
		path := filepath.Join(filepath.Dir(from), c.folder, "plugin.so")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, from, path)
		events := record(t)
		before := os.Environ()
		d := opened(t, "xla:"+path)
		isCUDA := d.Backend().(interface{ IsCUDA() bool }).IsCUDA()
		isCPU := d.Backend().(interface{ IsCPU() bool }).IsCPU()
		if d.Name() != c.name || isCPU != (c.name == "xla-cpu") || isCUDA != (c.name == "xla-cuda") || d.Shared() != isCPU {
			t.Errorf("below %s: %s, for go-xla CPU %v and CUDA %v, shared %v", c.folder, d.Name(), isCPU, isCUDA, d.Shared())
		}
		if got := only(events(false), "option preallocate"); (len(got) > 0) != isCUDA {
			t.Errorf("below %s: preallocate is sent %d times", c.folder, len(got))
		}
		if after := os.Environ(); !slices.Equal(after, before) {
			t.Errorf("below %s: the environment is %v", c.folder, after)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPlacing puts tensors on the devices of the fake plugin, with shared memory
// and without.
func TestPlacing(t *testing.T) {
	for _, query := range []string{"?devices=3", "?devices=3&shared=false"} {
		path := fake(t, "")
		events := record(t)
		d := opened(t, "xla:"+path+query)
		data := []float32{1, 2, 3, 4}
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), 16)
		for i := range d.Num() {
			tensor, err := tensors.FromRaw(d.Backend(), compute.DeviceNum(i), shapes.Make(dtypes.Float32, 4), raw)
			if err != nil {
				t.Fatal(err)
			}
			on, err := tensor.Device()
			if err != nil || int(on) != i {
				t.Errorf("device %v (%v), not %d", on, err, i)
			}
			if err := tensor.ConstBytes(func(got []byte) {
				if !bytes.Equal(got, raw) {
					t.Error("read back otherwise")
				}
			}); err != nil {
				t.Error(err)
			}
			if err := tensor.FinalizeAll(); err != nil {
				t.Error(err)
			}
		}
		way := map[bool]string{true: "view+", false: "transfer+"}[d.Shared()]
		if made := only(events(false), way); len(made) != 3 || made[2] != way+" device 2 bytes 16" {
			t.Errorf("%s: placed %q", query, made)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		checkBalance(t, events(false))
	}
}

// TestOpenTwice opens one plugin twice at the same time: two backends, one library.
func TestOpenTwice(t *testing.T) {
	path := fake(t, "")
	events := record(t)
	a, b := opened(t, "xla:"+path), opened(t, "xla:"+path+"?devices=4")
	if a.Num() != 2 || b.Num() != 4 {
		t.Errorf("%d and %d devices", a.Num(), b.Num())
	}
	for _, d := range []*gomlxfeed.Devices{b, a} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	checkBalance(t, events(false))
}

// TestOpenAtOnce opens two plugins from several goroutines.
func TestOpenAtOnce(t *testing.T) {
	paths := []string{fake(t, ""), fake(t, "")}
	var all sync.WaitGroup
	failures := make(chan error, 16)
	for i := range cap(failures) {
		all.Go(func() {
			d, err := gomlxfeed.Open(context.Background(), "xla:"+paths[i%2], gomlxfeed.OpenOptions{NoPreflight: true})
			if err == nil {
				err = d.Close()
			}
			failures <- err
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestMemoryIsNotTaken checks that the first client of a GPU does not preallocate
// memory, in the child process and in this one.
func TestMemoryIsNotTaken(t *testing.T) {
	path := fake(t, "platform=cuda;attribute=cuda_version")
	events := record(t)
	if err := opened(t, "xla:"+path).Close(); err != nil {
		t.Fatal(err)
	}
	for _, child := range []bool{true, false} {
		all := events(child)
		if clients := only(all, "client+"); len(clients) != 1 || all[0] != "option preallocate bool 0" {
			t.Errorf("in the child %v: %q", child, all)
		}
	}
}

// TestTwoPlugins opens two plugins of one platform, and then the first again.
func TestTwoPlugins(t *testing.T) {
	first := fake(t, "")
	second := filepath.Join(t.TempDir(), "plugin.so")
	if err := compile(t, second, "-I", headers(t), `-DFAKE_NAME="OTHER"`, filepath.Join("testdata", "fake_pjrt.c")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, device string }{{first, "FAKE_1"}, {second, "OTHER_1"}, {first, "FAKE_1"}} {
		d := opened(t, "xla:"+c.path)
		if got, want := d.Describe(1), c.device+" [processId=0]"; got != want {
			t.Errorf("device %q, not %q", got, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatWasTriedMustStillHold(t *testing.T) {
	path := fake(t, "devices=3")
	_, err := opener{}.Open(context.Background(), spec(t, "xla:"+path),
		&gomlxfeed.Facts{Name: "xla-cpu", Platform: "cpu", API: "PJRT 0.104", Shared: true, Devices: []string{"", ""}})
	want := `gomlxfeed: it had 2 devices in the preflight, but has 3 now`
	if err == nil || err.Error() != want || status.CodeOf(err) != status.Incompatible {
		t.Errorf("got %v (%v)\nwant %s", err, status.CodeOf(err), want)
	}
}

func spec(t *testing.T, text string) gomlxfeed.Spec {
	t.Helper()
	path, query, _ := strings.Cut(strings.TrimPrefix(text, "xla:"), "?")
	s := gomlxfeed.Spec{Kind: "xla", Path: path, Options: map[string]string{}}
	for pair := range strings.SplitSeq(query, "&") {
		if key, value, given := strings.Cut(pair, "="); given {
			s.Options[key] = value
		}
	}
	return s
}
