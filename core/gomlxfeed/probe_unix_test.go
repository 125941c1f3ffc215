//go:build unix

package gomlxfeed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// plugin returns the path of a file that the fake opener accepts as a plugin.
func plugin(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin.so")
	if err := os.WriteFile(path, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPreflight(t *testing.T) {
	d := opened(t, "fake:"+plugin(t)+"?devices=3")
	f := d.Facts()
	if d.Name() != "fake-cpu" || d.Num() != 3 || !d.Shared() || f.Platform != "cpu" || f.API != "FAKE 1.2" || d.Describe(2) != "virtual device 2 of 3" {
		t.Errorf("got %+v", f)
	}
	if tried := []dtype.Type{dtype.Float32, dtype.Int8}; !slices.Equal(f.DTypes, tried) {
		t.Errorf("element types %v, want those that the preflight tried: %v", f.DTypes, tried)
	}
	if d.Describe(3) != "" || d.Describe(-1) != "" {
		t.Error("devices that do not exist are described")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if opened(t, "fake:"+plugin(t)).Num() != 4 {
		t.Error("without a number, the plugin's own counts")
	}
	d, err := Open(context.Background(), "fake:"+plugin(t)+"?devices=2&do=segv", OpenOptions{NoPreflight: true})
	if err != nil || d.Name() != "fake-unprobed" || !slices.Equal(d.Facts().DTypes, dtype.All()) {
		t.Errorf("without preflight: %v", err)
	}
}

// The preflight does not wait for a process that the plugin started, even though
// that process keeps the child's files open.
func TestPreflightLeavesAProcessBehind(t *testing.T) {
	path := plugin(t)
	t.Cleanup(func() { endWritten(t, path+".pid") })
	done := make(chan error, 1)
	go func() {
		_, err := Open(context.Background(), "fake:"+path+"?do=orphan")
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("Open waits for a process that is not its own")
	}
}

// endWritten ends the process with the ID that is in a file.
func endWritten(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestPreflightErrors(t *testing.T) {
	path := plugin(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	noise := "; it printed last: noise on[31m standard error"
	damaged := "; the file is damaged, or the plugin does not fit this release or the options; this process did not load it"
	for _, c := range []struct {
		query string
		o     OpenOptions
		code  status.Code
		want  string
	}{
		{"?do=error", OpenOptions{}, status.Unsupported, "PJRT API 1.0 is not 0.x; use another plugin"},
		{"?do=panic", OpenOptions{}, status.Internal, "panic: no client; this is a bug in meshfeed: please report it with the file and the options that led here"},
		{"?do=segv", OpenOptions{}, status.Incompatible, "the plugin ended its preflight while creating the client (SIGSEGV)" + noise + damaged},
		{"?do=abort", OpenOptions{}, status.Incompatible, "the plugin ended its preflight while creating the client (SIGABRT)" + noise + damaged},
		{"?do=kill", OpenOptions{}, status.Incompatible, "the plugin ended its preflight while creating the client (signal: killed)" + noise + damaged},
		{"?do=exit", OpenOptions{}, status.Incompatible, "the plugin ended its preflight while creating the client (exit status 7)" + noise + damaged},
		{"?do=late", OpenOptions{}, status.Incompatible, "the plugin ended its preflight while creating the client (signal: killed)" + noise + damaged},
		{"?do=hang", OpenOptions{Timeout: 2 * time.Second}, status.Timeout, "its preflight did not end within 2s while creating the client" + noise + "; raise the timeout if the device is slow to start or in use by another program"},
		{"?do=garbage", OpenOptions{}, status.Incompatible, "the prober \"" + self + "\" does not follow the preflight protocol; it wrote \"here I am\"" + noise + "; the prober and this program must be of the same release"},
		{"?do=none", OpenOptions{}, status.Incompatible, "it has no devices, or no name" + noise},
		{"?do=nameless", OpenOptions{}, status.Incompatible, "it has no devices, or no name" + noise},
		{"?do=more&devices=2", OpenOptions{}, status.Incompatible, "it has 3 devices instead of 2" + noise + "; ask for devices=3, or omit it"},
		{"", OpenOptions{Prober: "/nowhere/prober"}, status.NotFound, "the prober \"/nowhere/prober\" cannot be started"},
		{"", OpenOptions{Prober: "/bin/true"}, status.Incompatible, "the prober \"/bin/true\" ended without an answer (exit status 0); its main must call gomlxfeed.RunProbe first"},
	} {
		spec := "fake:" + path + c.query
		want := "gomlxfeed: \"" + spec + "\" was not opened: " + c.want
		d, err := Open(context.Background(), spec, c.o)
		if d != nil || err == nil || err.Error() != want || status.CodeOf(err) != c.code {
			t.Errorf("got  %v (%v)\nwant %s (%v)", err, status.CodeOf(err), want, c.code)
		}
	}
}

func TestOpenAndPreflightDisagree(t *testing.T) {
	spec := "fake:" + plugin(t) + "?do=fewer"
	_, err := Open(context.Background(), spec)
	if want := "gomlxfeed: \"" + spec + "\" has 3 devices instead of 4; ask for devices=3, or omit it"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestPreflightIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := Open(ctx, "fake:"+plugin(t)+"?do=hang")
	if status.CodeOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAProber(t *testing.T) {
	canProbe.Store(false)
	defer canProbe.Store(true)
	t.Setenv("PATH", t.TempDir())
	spec := "fake:" + plugin(t)
	_, err := Open(context.Background(), spec)
	want := "gomlxfeed: \"" + spec + "\" was not opened: no program was found that can try it first; put a `meshfeed` built with -tags xla on PATH, or name one as the prober; a Go program may call gomlxfeed.RunProbe first in main; without a preflight the plugin is loaded at the risk of this process"
	if err == nil || err.Error() != want || status.CodeOf(err) != status.Unsupported {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A program that did not call RunProbe uses the meshfeed command on PATH.
func TestProberOnPath(t *testing.T) {
	canProbe.Store(false)
	defer canProbe.Store(true)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(self, filepath.Join(folder, "meshfeed")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	d := opened(t, "fake:"+plugin(t)+"?devices=2")
	if d.Name() != "fake-cpu" || d.Num() != 2 {
		t.Errorf("opened %s with %d devices", d.Name(), d.Num())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A child exits by itself after its parent has died.
func TestProberEndsByItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), probeVariable+`={"spec":"fake:`+plugin(t)+`?do=hang","limit":100000000}`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Run(); err == nil || err.Error() != "exit status 1" {
		t.Errorf("got %v", err)
	}
}

// The environment of the process does not change, and the child's output does not
// reach its standard streams.
func TestOpeningIsSilent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"go", "virtual:3", "fake:" + plugin(t) + "?devices=2"} {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "GOMLXFEED_TEST_OPEN="+spec)
		if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("%s: %v, printed %q", spec, err, out)
		}
	}
}

func TestLongNoiseKeepsItsEnd(t *testing.T) {
	var kept tail
	for range 100 {
		_, _ = kept.Write([]byte(strings.Repeat("x", 1000) + "\n"))
	}
	_, _ = kept.Write([]byte("terminate called\nSIGABRT: abort\nPC=0x1 m=0 sigcode=6\n"))
	if kept.lastLine() != "terminate called" || len(kept.String()) > 64<<10 {
		t.Errorf("got %q of %d bytes", kept.lastLine(), len(kept.String()))
	}
}
