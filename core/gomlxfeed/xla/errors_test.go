//go:build cgo && (linux || darwin)

package xla

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

const later = "; use a later release of the plugin"

// TestErrors opens unusable plugins, with a preflight and without.
func TestErrors(t *testing.T) {
	cases := []struct {
		settings, query string
		code            status.Code
		want            string
	}{
		{"minor=80", "", status.Incompatible, "it has version 0.80 of the PJRT interface, but 0.81 or a later 0.x is needed" + later},
		{"major=1;minor=90", "", status.Incompatible, "it has version 1.90 of the PJRT interface, but 0.81 or a later 0.x is needed" + later},
		{"null=PJRT_Client_DefaultDeviceAssignment", "", status.Incompatible, "it lacks PJRT_Client_DefaultDeviceAssignment, which GoMLX calls" + later},
		{"null=PJRT_Buffer_ToHostBuffer,PJRT_Event_Await", "", status.Incompatible, "it lacks PJRT_Event_Await, PJRT_Buffer_ToHostBuffer, which GoMLX calls" + later},
		{"size=800", "", status.Incompatible, "it lacks PJRT_Executable_GetCompiledMemoryStats, which GoMLX calls" + later},
		{"table=none", "", status.Incompatible, "it returned no table of functions"},
		{"fail=PJRT_Plugin_Initialize:13:no room.", "", status.Unsupported, "it could not be initialized: no room (PJRT code 13)"},
		{"fail=PJRT_Plugin_Attributes:12:none", "", status.Unsupported, "it could not be initialized: none (PJRT code 12)"},
		{"fail=PJRT_Client_Create:9:No visible GPU devices.;attribute=cuda_version", "", status.Unsupported,
			"it could not create a client: No visible GPU devices (PJRT code 9); check nvidia-smi, CUDA_VISIBLE_DEVICES and the option visible_devices"},
		{"fail=PJRT_Client_Create:5:TPU initialization failed", "", status.Unsupported, "it could not create a client: TPU initialization failed (PJRT code 5)"},
		{"fail=PJRT_Client_Create:8:full", "", status.ResourceExhausted, "it could not create a client: full (PJRT code 8); another program may use the device"},
		{"fail=PJRT_Client_Create:3:odd", "", status.InvalidArgument, "it could not create a client: odd (PJRT code 3)"},
		{"fail=PJRT_Client_AddressableDevices:13:lost", "", status.Unsupported, "it could not create a client: lost (PJRT code 13)"},
		{"fail=PJRT_Client_PlatformName:13:none", "", status.Incompatible, "its client does not report a platform"},
		{"fail=PJRT_Device_GetDescription:13:none", "", status.Unsupported, "it could not describe device 0: none (PJRT code 13)"},
		{"ids=same", "", status.Unsupported, "its devices 0 and 1 have the same hardware id -1, but GoMLX identifies devices by this id; ask for one device, if the plugin has such an option"},
		{"lost=1", "", status.Unsupported, "data placed on device 0 is on device 1"},
		{"corrupt=1", "", status.DataLoss, "data placed on device 0 comes back changed"},
		{"fail=PJRT_Client_BufferFromHostBuffer:8:full", "", status.ResourceExhausted, "it could not place on device 0: full (PJRT code 8)"},
		{"fail=PJRT_Client_CreateViewOfDeviceBuffer:12:no views", "", status.Unsupported, "it could not place on device 0: no views (PJRT code 12)"},
		{"fail=PJRT_Buffer_Device:13:lost", "", status.Unsupported, "it could not name the device of a buffer on device 0: lost (PJRT code 13)"},
		{"fail=PJRT_Buffer_ToHostBuffer:13:lost", "", status.Unsupported, "it could not read from device 0: lost (PJRT code 13)"},
		{"devices=0", "", status.Unsupported, "its client has no devices"},
		{"", "?device=2", status.InvalidArgument, `there is no option "device"; the options are devices, shared, visible_devices and memory_fraction`},
		{"", "?shared=perhaps", status.InvalidArgument, `option shared must be true or false, but is "perhaps"`},
		{"", "?visible_devices=1,1", status.InvalidArgument, `option visible_devices must be numbers with commas between them, each once, but is "1,1"`},
		{"", "?visible_devices=", status.InvalidArgument, `option visible_devices must be numbers with commas between them, each once, but is ""`},
		{"", "?memory_fraction=NaN", status.InvalidArgument, `option memory_fraction must be above 0 and at most 1, but is "NaN"`},
		{"", "?memory_fraction=0.5", status.InvalidArgument, `option memory_fraction is for plugins of platform "cuda", and this one's is "cpu"`},
		{"platform=tpu", "?visible_devices=0", status.InvalidArgument, `option visible_devices is for plugins of platform "cuda", and this one's is "tpu"`},
		{"platform=cuda", "?shared=true", status.InvalidArgument, `option shared is for plugins of platform "cpu", and this one's is "cuda"`},
	}
	for _, c := range cases {
		spec := "xla:" + fake(t, c.settings) + c.query
		for _, direct := range []bool{false, true} {
			check(t, spec, gomlxfeed.OpenOptions{NoPreflight: direct}, c.code, c.want)
		}
	}
	if alive := pjrt.BuffersAlive(); alive != 0 {
		t.Errorf("%d buffers are left", alive)
	}
}

// check opens spec and compares the error.
func check(t *testing.T, spec string, o gomlxfeed.OpenOptions, code status.Code, want string) {
	t.Helper()
	d, err := gomlxfeed.Open(context.Background(), spec, o)
	if err == nil {
		_ = d.Close()
		t.Errorf("%s opens with %s, without %q", spec, os.Getenv("FAKE_PJRT"), want)
		return
	}
	want = `gomlxfeed: "` + spec + `" was not opened: ` + want
	if err.Error() != want || status.CodeOf(err) != code {
		t.Errorf("%s, without preflight %v:\ngot  %v (%v)\nwant %s (%v)", os.Getenv("FAKE_PJRT"), o.NoPreflight, err, status.CodeOf(err), want, code)
	}
}

// TestCount opens a plugin with another number of devices than the option.
func TestCount(t *testing.T) {
	path := fake(t, "stubborn=1;devices=3")
	check(t, "xla:"+path+"?devices=4", gomlxfeed.OpenOptions{}, status.Incompatible, "it has 3 devices instead of 4; ask for devices=3, or omit it")
	behave(t, "platform=cuda;devices=2")
	check(t, "xla:"+path+"?devices=4", gomlxfeed.OpenOptions{}, status.Incompatible, "it has 2 devices instead of 4; ask for devices=2, or omit it")
}

// TestPluginsThatDoNotReturn opens plugins that end or block the child process.
func TestPluginsThatDoNotReturn(t *testing.T) {
	for _, c := range []struct{ settings, want string }{
		{"crash=GetPjrtApi", "loading the plugin (SIGSEGV)"},
		{"crash=PJRT_Plugin_Initialize", "initializing the plugin (SIGSEGV)"},
		{"abort=PJRT_Client_Create", "creating a client (SIGABRT)"},
		{"crash=PJRT_Device_GetDescription", "listing the devices (SIGSEGV)"},
		{"crash=PJRT_Buffer_ToHostBuffer", "placing on the devices (SIGSEGV)"},
		{"abort=PJRT_Client_Destroy", "destroying the client (SIGABRT)"},
	} {
		dies(t, "xla:"+fake(t, c.settings), 0, status.Incompatible, "the plugin ended its preflight while "+c.want)
	}
	dies(t, "xla:"+fake(t, "hang=PJRT_Client_Create"), 2*time.Second, status.Timeout, "its preflight did not end within 2s while creating a client")
}

// dies opens spec and compares the message and the preflight's hint.
func dies(t *testing.T, spec string, limit time.Duration, code status.Code, want string) {
	t.Helper()
	_, err := gomlxfeed.Open(context.Background(), spec, gomlxfeed.OpenOptions{Timeout: limit})
	want = `"` + spec + `" was not opened: ` + want
	var e *status.Error
	if !errors.As(err, &e) || e.Code != code || e.Msg != want {
		t.Errorf("%s:\ngot  %v (%v)\nwant %s (%v)", os.Getenv("FAKE_PJRT"), err, status.CodeOf(err), want, code)
	}
}

// TestFiles opens files that are not plugins.
func TestFiles(t *testing.T) {
	path := fake(t, "")
	dir := filepath.Dir(path)
	library, text, cutoff := filepath.Join(dir, "library.so"), filepath.Join(dir, "text.so"), filepath.Join(dir, "cut.so")
	source := filepath.Join(dir, "library.c")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{source: []byte("int other(void); int other(void) { return 1; }\n"), text: []byte("no library\n"), cutoff: whole[:len(whole)-1]} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := compile(t, library, source); err != nil {
		t.Fatal(err)
	}
	check(t, "xla:"+library, gomlxfeed.OpenOptions{}, status.Incompatible,
		"it is a shared library, but not a PJRT plugin: it lacks the symbol GetPjrtApi; plugins are in packages such as xla-cpu-pjrt, jax-cuda13-pjrt and libtpu, but not in jaxlib")
	check(t, "xla:"+cutoff, gomlxfeed.OpenOptions{}, status.DataLoss, "it is damaged or truncated: its section table cannot be read; copy or download it again")
	check(t, "xla:"+text, gomlxfeed.OpenOptions{}, status.Incompatible,
		"it cannot be loaded: file too short; it must be a shared library for this system, with all libraries that it needs: ldd shows which are missing")
}

func TestCancelled(t *testing.T) {
	path := fake(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := opener{}.Open(ctx, spec(t, "xla:"+path), nil)
	if want := `gomlxfeed: context canceled`; err == nil || err.Error() != want || status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v (%v)\nwant %s", err, status.CodeOf(err), want)
	}
}
