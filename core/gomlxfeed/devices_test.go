package gomlxfeed

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/internal/virtual"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestSpecs(t *testing.T) {
	const forms = "; use \"go\", \"virtual:N\" or \"xla:/absolute/path/plugin.so?devices=N\""
	for spec, want := range map[string]string{
		"":                              `"" does not name devices` + forms,
		"cpu":                           `"cpu" does not name devices` + forms,
		"go:8":                          `"go:8": the pure-Go backend has one device and no options; use "go", or "virtual:N" for N devices`,
		"virtual":                       `"virtual": the number of devices is missing; add it, such as "virtual:8"`,
		"virtual:":                      `"virtual:": the number of devices is missing; add it, such as "virtual:8"`,
		"virtual:0":                     `"virtual:0": the number of devices must be 1 to 1048576, but is "0"`,
		"virtual:x":                     `"virtual:x": the number of devices must be 1 to 1048576, but is "x"`,
		"virtual:1048577":               `"virtual:1048577": the number of devices must be 1 to 1048576, but is "1048577"`,
		"tpu:/x":                        `"tpu:/x": "tpu" is not a kind of devices` + forms,
		"fake:cpu":                      `"fake:cpu": the plugin's path must be absolute, but is "cpu"; give the absolute path of the shared library: plugins are not searched for or downloaded`,
		"fake:":                         `"fake:": the plugin's path must be absolute, but is ""; give the absolute path of the shared library: plugins are not searched for or downloaded`,
		"fake:/x?devices=-1":            `"fake:/x?devices=-1": the number of devices must be 1 to 1048576, but is "-1"`,
		"fake:/x?a=1&a=2":               `"fake:/x?a=1&a=2": option "a" is given 2 times`,
		"fake:/x?a=%zz":                 `"fake:/x?a=%zz": the text after the question mark is not key=value&key=value`,
		"fake:/nowhere/plugin.so":       `"fake:/nowhere/plugin.so" was not opened: there is no file /nowhere/plugin.so`,
		"fake:/":                        `"fake:/" was not opened: / is not a file; name the shared library itself`,
		"xla:/nowhere/plugin.so?gpu=no": `"xla:/nowhere/plugin.so?gpu=no": this program was built without XLA; a Go program imports _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"; the command and the C library are built with -tags xla, the Python package by MESHFEED_XLA=1 pip install .`,
	} {
		d, err := Open(context.Background(), spec)
		if d != nil || err == nil || err.Error() != "gomlxfeed: "+want {
			t.Errorf("got  %v\nwant gomlxfeed: %s", err, want)
		}
	}
	s, err := parseSpec("xla:/opt/a b.so?devices=8&b=2&a=1")
	if err != nil || s.Path != "/opt/a b.so" || s.Devices != 8 || strings.Join(s.OptionNames(), " ") != "a b" || s.Options["b"] != "2" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestOpenArguments(t *testing.T) {
	if _, err := Open(context.Background(), "go", OpenOptions{}, OpenOptions{}); err == nil || err.Error() != "gomlxfeed: Open takes at most one OpenOptions, got 2" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, "go"); !errors.Is(err, context.Canceled) || err.Error() != `gomlxfeed: "go" was not opened: context canceled` {
		t.Errorf("got %v", err)
	}
}

func TestRegisteringTwice(t *testing.T) {
	defer func() {
		if r := recover(); r != "gomlxfeed: kind fake is registered twice" {
			t.Errorf("got %v", r)
		}
	}()
	Register("fake", fake{})
}

func TestFactsOfPureGo(t *testing.T) {
	d := opened(t, "virtual:2")
	defer d.Close()
	f := d.Facts()
	if d.Name() != "virtual" || d.Num() != 2 || !d.Shared() || f.Platform != "go" || len(f.DTypes) != len(dtype.All()) || d.Describe(1) != "virtual device 1 of 2" {
		t.Errorf("got %+v", f)
	}
	f.Devices[0] = "changed"
	if d.Describe(0) != "virtual device 0 of 2" || d.Backend().NumDevices() != 2 {
		t.Error("the facts are not a copy")
	}
}

// broken returns devices. Device 1 panics and device 2 fails.
func broken(t *testing.T) *Devices {
	t.Helper()
	b, err := virtual.New(3)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDevices(Spec{}, Opened{Name: "brittle", Backend: brittle{b}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAPanicBreaksTheDevices(t *testing.T) {
	d := broken(t)
	data := []byte{1, 2, 3, 4}
	good, err := d.put(0, shapeOf(dtype.Uint8, []int{4}), data)
	if err != nil {
		t.Fatal(err)
	}
	_, full := d.put(2, shapeOf(dtype.Uint8, []int{4}), data)
	_, cut := d.put(1, shapeOf(dtype.Uint8, []int{4}), data)
	_, later := d.put(0, shapeOf(dtype.Uint8, []int{4}), data)
	for _, c := range []struct {
		err  error
		code status.Code
		want string
	}{
		{full, status.Internal, "gomlxfeed: cannot place on device 2: failed to create backend buffer from flat data for shape (Uint8)[4] on device 2, on backend virtual: device 2 is full"},
		{cut, status.Internal, "gomlxfeed: cannot place on device 1: the backend panicked: wire cut; close these devices and open them again: a backend is not used after a panic"},
		{later, status.InvalidState, "gomlxfeed: cannot place on device 0: the backend panicked earlier (wire cut); close these devices and open them again"},
		{d.read(good, data), status.InvalidState, "gomlxfeed: cannot read a tensor: the backend panicked earlier (wire cut); close these devices and open them again"},
	} {
		if c.err == nil || c.err.Error() != c.want || status.CodeOf(c.err) != c.code {
			t.Errorf("got  %v (%v)\nwant %s (%v)", c.err, status.CodeOf(c.err), c.want, c.code)
		}
	}
	if err := d.free(good, 4); err != nil {
		t.Errorf("a tensor of broken devices is only forgotten: %v", err)
	}
	if n, bytes := d.Live(); n != 0 || bytes != 0 {
		t.Errorf("%d buffers, %d bytes live", n, bytes)
	}
}

func TestClose(t *testing.T) {
	d := opened(t, "virtual:4")
	backend := d.Backend()
	held, err := d.put(1, shapeOf(dtype.Uint8, []int{3}), []byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	ring := ringOf(t, d, squareLayout(t))
	m, err := ring.alloc()
	if err != nil {
		t.Fatal(err)
	}
	m.Free() // an idle slot, which Close frees
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := d.Live(); n != 1 || bytes != 3 || d.Backend() != nil {
		t.Errorf("%d buffers of %d bytes are live; the backend is %v", n, bytes, d.Backend())
	}
	if backend.IsFinalized() {
		t.Error("the backend ended while a tensor is held")
	}
	_ = ring.Close() // does nothing
	_, put := d.put(0, shapeOf(dtype.Uint8, []int{1}), []byte{1})
	_, _, empty := d.empty(0, shapeOf(dtype.Uint8, []int{1}))
	_, another := d.Ring(squareLayout(t))
	for _, c := range []struct {
		err  error
		want string
	}{
		{put, "gomlxfeed: cannot place on device 0: the devices are closed"},
		{empty, "gomlxfeed: cannot allocate on device 0: the devices are closed"},
		{d.read(held, make([]byte, 3)), "gomlxfeed: cannot read a tensor: the devices are closed"},
		{another, "gomlxfeed: cannot allocate: the devices are closed"},
	} {
		if c.err == nil || c.err.Error() != c.want || status.CodeOf(c.err) != status.InvalidState {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
	if err := d.free(held, 3); err != nil || !backend.IsFinalized() {
		t.Errorf("after the last tensor: %v, finalized: %v", err, backend.IsFinalized())
	}
}

func TestCloseReportsTheFailure(t *testing.T) {
	b, err := virtual.New(1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDevices(Spec{}, Opened{Name: "stuck", Backend: stuck{b}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "gomlxfeed: cannot close: the backend panicked: stuck; close these devices and open them again: a backend is not used after a panic"
	for range 2 {
		if err := d.Close(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Placing, reading and freeing race with Close. Every call succeeds or reports
// that the devices are closed, and the backend ends.
func TestCloseRacesWithCalls(t *testing.T) {
	for range 50 {
		d := opened(t, "virtual:4")
		backend := d.Backend()
		var started, group sync.WaitGroup
		for dev := range compute.DeviceNum(4) {
			started.Add(1)
			group.Go(func() {
				data := []byte{byte(dev), 2, 3, 4}
				started.Done()
				for {
					placed, err := d.put(dev, shapeOf(dtype.Uint8, []int{4}), data)
					if err != nil {
						if status.CodeOf(err) != status.InvalidState {
							t.Errorf("put: %v", err)
						}
						return
					}
					if err := d.read(placed, data); err != nil && status.CodeOf(err) != status.InvalidState {
						t.Errorf("read: %v", err)
					}
					if err := d.free(placed, 4); err != nil {
						t.Errorf("free: %v", err)
					}
				}
			})
		}
		started.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
		if n, _ := d.Live(); n != 0 || !backend.IsFinalized() {
			t.Fatalf("%d buffers are left; finalized: %v", n, backend.IsFinalized())
		}
	}
}
