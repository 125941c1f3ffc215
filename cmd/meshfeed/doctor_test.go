package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/meshfeed/meshfeed"
	"github.com/meshfeed/meshfeed/core/problem"
)

// healthy is a machine that shows no problem.
type healthy struct {
	python pythonInfo
	jax    *jaxInfo
	files  fstest.MapFS
	vars   []string
	paths  []string
	page   bool
	named  bool // Python, by --python
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

const limits = "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            4096                 8192                 files     \n" +
	"Max locked memory         8388608              unlimited            bytes     \nMax address space         unlimited            unlimited            bytes     \n"

func newHealthy(t *testing.T) *healthy {
	t.Helper()
	h := &healthy{page: true, vars: []string{"HOME=/root", "XLA_FLAGS=--xla_a=1 --b=2", "JAX_LOG=\x1b[31m", "GOGC=", "AWS_SECRET=x"}, paths: []string{t.TempDir()}}
	for what, into := range map[string]any{
		`{"executable": "/env/bin/python", "version": "3.12.1", "plugins": ["jax-cuda12-plugin 0.10.2"], "library": {"path": "/env/libmeshfeed.so.1", "abi": "1.0", "jpeg": "libjpeg-turbo.1"},
		"packages": {"meshfeed": "1.2.3", "jax": "0.10.2", "jaxlib": "0.10.1", "numpy": "2.4.6", "pyarrow": ""}}`: &h.python,
		`{"backend": "gpu", "devices": [{"kind": "NVIDIA H100 80GB HBM3", "count": 8, "memory_bytes": 68719476736}]}`: &h.jax,
	} {
		if err := json.Unmarshal([]byte(what), into); err != nil {
			t.Fatal(err)
		}
	}
	h.files = fstest.MapFS{
		"proc/meminfo":                 file("MemTotal:       8388608 kB\nMemAvailable:    6291456 kB\n"),
		"proc/self/cgroup":             file("0::/job\n"),
		"sys/fs/cgroup/job/memory.max": file("4294967296\n"), "sys/fs/cgroup/job/memory.current": file("1073741824\n"),
		"proc/self/limits":                           file(limits),
		"proc/self/mountinfo":                        file("22 1 8:1 / / rw - ext4 x rw\n"),
		"sys/kernel/mm/transparent_hugepage/enabled": file("always [madvise] never\n"),
		"dev/nvidia0":                                file(""),
	}
	return h
}

// report is what the verb doctor finds out about the machine.
func (h *healthy) report() *report {
	r, m := &report{Problems: []symptom{}}, machine{h.files, relevant(h.vars)}
	r.build(h.page)
	r.python(h.python, "1.2.3", h.named)
	if h.python.Error == "" {
		r.jax(h.python, h.jax, m, time.Minute)
	}
	r.host(m)
	r.paths(m, h.paths)
	r.sort()
	return r
}

func TestDoctorPrints(t *testing.T) {
	h := newHealthy(t)
	if err := os.WriteFile(filepath.Join(h.paths[0], "a.arrow"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := h.report().print(&out); err != nil {
		t.Fatal(err)
	}
	head, got, _ := strings.Cut(out.String(), "\n")
	want := `python      3.12.1 /env/bin/python
packages    jax 0.10.2, jaxlib 0.10.1, meshfeed 1.2.3, numpy 2.4.6, pyarrow (missing)
plugins     jax-cuda12-plugin 0.10.2
C library   /env/libmeshfeed.so.1, ABI 1.0, JPEG by libjpeg-turbo.1
JAX         gpu: 8 × NVIDIA H100 80GB HBM3 with 64.0 GiB
memory      8.0 GiB, of which 6.0 GiB are free; limit of the control group 4.0 GiB, of which 3.0 GiB are free
limits      open files 4,096, locked memory 8.0 MiB, address space unlimited
huge pages  madvise
hardware    an NVIDIA GPU
variable    GOGC=
variable    JAX_LOG=\x1b[31m
variable    XLA_FLAGS=--xla_a=1 --b=2
path        ` + h.paths[0] + `: ext4, 1 file
path        .: ext4

no problem found
`
	if got != want || !strings.HasPrefix(head, "meshfeed    "+meshfeed.Version()+", go1") || !strings.Contains(head, ", with page, with") {
		t.Errorf("got\n%s\n%s\nwant\n%s", head, got, want)
	}
	r := &report{Problems: []symptom{{problem.Error, "no \x07 library", "make lib"}, {problem.Info, "no page", "make page"}}}
	out.Reset()
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "\nerror: no \\a library\n  make lib\ninfo: no page\n  make page\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDoctorDiagnoses changes a healthy machine in one way at a time. Every change shows one
// problem.
func TestDoctorDiagnoses(t *testing.T) {
	if found := newHealthy(t).report().Problems; found == nil || len(found) > 0 {
		t.Errorf("JSON needs an empty list: %v", found)
	}
	const meminfo, openFiles = "proc/meminfo", "proc/self/limits"
	for _, c := range []struct {
		name   string
		change func(*healthy)
		want   string // "" for no problem
	}{
		{"no Python", func(h *healthy) { h.python = pythonInfo{Executable: "python3", Error: "executable file not found"} },
			"info: Python could not be asked: executable file not found; repair this Python, or name another one by --python"},
		{"a named Python", func(h *healthy) { h.python = pythonInfo{Executable: "python3", Error: "no NumPy"}; h.named = true },
			"error: Python could not be asked: no NumPy; repair this Python, or name another one by --python"},
		{"no package", func(h *healthy) {
			h.python = pythonInfo{Executable: "/usr/bin/python3", Error: "exit status 1: ModuleNotFoundError: No module named 'meshfeed'"}
		}, "info: /usr/bin/python3 has no package meshfeed; name another Python by --python, or install the package there"},
		{"another version", func(h *healthy) { h.python.Packages["meshfeed"] = "1.1.0" },
			"warning: the package has version 1.1.0, and this command 1.2.3; use the command of the package: python -m meshfeed"},
		{"no library", func(h *healthy) {
			h.python.Library = struct{ Path, ABI, JPEG, Error string }{"x", "", "", "python: no library; reinstall the package"}
		}, "error: python: no library; reinstall the package"},
		{"no libjpeg-turbo", func(h *healthy) { h.python.Library.JPEG = "go1.26" },
			"warning: the C library was built without libjpeg-turbo, so it decodes JPEG slower, and to other bytes than other builds; install a wheel, or build where pip can fetch a package: make lib"},
		{"no JAX", func(h *healthy) { h.python.Packages["jax"] = ""; h.jax = nil },
			`warning: JAX is not installed, so loaders give NumPy arrays only; pip install "jax>=0.8", or the build for your accelerator`},
		{"old JAX", func(h *healthy) { h.python.Packages["jax"] = "0.7.9"; h.python.Packages["jaxlib"] = "0.7.8" },
			`error: JAX 0.7.9 is older than 0.8; pip install -U "jax>=0.8"`},
		{"new JAX", func(h *healthy) { h.python.Packages["jax"] = "1.0.0"; h.python.Packages["jaxlib"] = "1.0.1" }, ""},
		{"JAX and jaxlib", func(h *healthy) { h.python.Packages["jaxlib"] = "0.9.2" },
			"warning: jax 0.10.2 and jaxlib 0.9.2 are of different releases; install both of one release: pip install -U jax jaxlib"},
		{"held", func(h *healthy) { h.jax = &jaxInfo{timedOut: true, Error: "x"} },
			"warning: JAX did not list its devices within 1m0s; another program may hold the TPU or GPU, or the driver does not answer; end that program; or set JAX_PLATFORMS=cpu; or wait longer by --timeout"},
		{"broken JAX", func(h *healthy) { h.jax = &jaxInfo{Error: "RuntimeError: no backend"} },
			"error: JAX lists no devices: RuntimeError: no backend; repair the installation of JAX, or choose another backend by JAX_PLATFORMS"},
		{"unused GPU", func(h *healthy) { h.jax = &jaxInfo{Backend: "cpu"} },
			"warning: this machine has an NVIDIA GPU, but JAX uses the CPU; install the build of JAX for it: https://docs.jax.dev/en/latest/installation.html"},
		{"hidden GPU", func(h *healthy) {
			h.jax = &jaxInfo{Backend: "cpu"}
			h.vars = append(h.vars, "JAX_PLATFORMS=cpu")
		}, ""},
		{"little memory", func(h *healthy) { h.files[meminfo] = file("MemTotal: 8388608 kB\nMemAvailable: 524288 kB\n") },
			"warning: only 512.0 MiB of memory are free; end other programs; max_host_bytes bounds what a loader takes"},
		{"little memory in the control group", func(h *healthy) { h.files["sys/fs/cgroup/job/memory.current"] = file("4294967296") },
			"warning: only 0 B of the 4.0 GiB that the control group may take are free; raise the limit of the control group, which Slurm's --mem and the memory limit of a container set; max_host_bytes bounds what a loader takes"},
		{"a small limit", func(h *healthy) {
			h.files["sys/fs/cgroup/job/memory.max"], h.files["sys/fs/cgroup/job/memory.current"] = file("536870912"), file("117440512")
		}, "warning: only 400.0 MiB of the 512.0 MiB that the control group may take are free; raise the limit of the control group, which Slurm's --mem and the memory limit of a container set; max_host_bytes bounds what a loader takes"},
		{"no limit", func(h *healthy) { h.files["sys/fs/cgroup/job/memory.max"] = file("max") }, ""},
		{"nothing is known", func(h *healthy) { h.files = nil }, ""},
		{"huge pages", func(h *healthy) {
			h.files["sys/kernel/mm/transparent_hugepage/enabled"] = file("always madvise [never]\n")
		},
			"info: transparent huge pages are off, so large batches take more time; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root"},
		{"no path", func(h *healthy) { h.paths = []string{"/no/such"} },
			"error: /no/such: no such file or directory; name a file or folder that exists and that this user may read"},
		{"network", func(h *healthy) {
			real, _ := filepath.EvalSymlinks(h.paths[0])
			h.files["proc/self/mountinfo"], h.paths[0] = file("22 1 8:1 / / rw - ext4 x rw\n23 22 0:5 / "+real+" rw - nfs4 x rw\n"), real
		}, "info: PATH is on nfs4, where a read waits for a server; raise prefetch, or copy the files to a local disk"},
		{"a low limit", func(h *healthy) { h.paths, h.files[openFiles] = nil, file("Max open files 10 20 files") },
			"warning: a process may open 10 files, but a dataset keeps 0 files open, and a program needs 64 more; ulimit -Hn 64, or write fewer, larger files"},
		{"too many files", func(h *healthy) {
			h.paths, h.files[openFiles] = []string{"doctor.go"}, file("Max open files 64 128 files")
		},
			"warning: a process may open 64 files, but a dataset keeps 1 file open, and a program needs 64 more; ulimit -Hn 65, or write fewer, larger files"},
		{"just enough open files", func(h *healthy) {
			h.paths, h.files[openFiles] = []string{"doctor.go"}, file("Max open files 65 128 files")
		}, ""},
		{"an unlimited number of files", func(h *healthy) { h.files[openFiles] = file("Max open files unlimited unlimited files") }, ""},
		{"no page", func(h *healthy) { h.page = false },
			"info: this build has no browser page; install a wheel, or without MESHFEED_PAGE=0; in a checkout run: make page lib"},
	} {
		h := newHealthy(t)
		c.change(h)
		var got []string
		for _, s := range h.report().Problems {
			got = append(got, string(s.Severity)+": "+s.Message+"; "+s.Remedy)
		}
		want := c.want
		if len(h.paths) > 0 {
			want = strings.Replace(want, "PATH", h.paths[0], 1)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, want)
		}
	}
}

func TestDoctorPutsErrorsFirst(t *testing.T) {
	h := newHealthy(t)
	h.page, h.python.Packages["jaxlib"], h.python.Library.Error = false, "0.9.2", "x"
	h.files["sys/kernel/mm/transparent_hugepage/enabled"] = file("[never]")
	var got []problem.Severity
	for _, s := range h.report().Problems {
		got = append(got, s.Severity)
	}
	if want := []problem.Severity{problem.Error, problem.Warning, problem.Info, problem.Info}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestAccelerators(t *testing.T) {
	for _, c := range []struct {
		files fstest.MapFS
		want  string
	}{
		{fstest.MapFS{
			"sys/bus/pci/devices/0000:00:04.0/vendor": file("0x1ae0\n"), "sys/bus/pci/devices/0000:00:04.0/device": file("0x0042\n"), // a network card
			"sys/bus/pci/devices/0000:00:05.0/vendor": file("0x1ae0\n"), "sys/bus/pci/devices/0000:00:05.0/device": file("0x0063\n"),
		}, "a TPU"},
		{fstest.MapFS{"dev/nvidiactl": file("")}, "an NVIDIA GPU"},
		{nil, ""},
	} {
		if got := (machine{root: c.files}).accelerator(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestFileSystems(t *testing.T) {
	mounts := []string{
		"22 1 8:1 / / rw - ext4 /dev/sda rw",
		"23 22 0:5 / /data rw shared:1 - nfs4 server:/x rw",
		`24 22 0:6 / /my\040disk rw - fuse.gcsfuse bucket rw`,
		"25 22 0:7 / /data/fast rw - tmpfs tmpfs rw",
		"26 22 0:8 / /run rw - overlay overlay rw",
		"27 23 0:9 / /data/fast rw - lustre x rw", // mounted over the one before
		"broken",
	}
	for path, want := range map[string]string{
		"/": "ext4 false", "/home/x": "ext4 false", "/data": "nfs4 true", "/data/a/b": "nfs4 true", "/database": "ext4 false",
		"/my disk/a": "fuse.gcsfuse true", "/data/fast/x": "lustre true", "/run": "overlay false",
	} {
		fileSystem := mounted(mounts, path)
		if got := fmt.Sprint(fileSystem, " ", waits(fileSystem)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestFilesOfAPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.arrow", "b.arrow"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := machine{root: fstest.MapFS{"proc/self/mountinfo": file("22 1 8:1 / / rw - ext4 x rw\n23 22 0:5 / " + real + " rw - tmpfs x rw\n")}}
	for name, files := range map[string]string{dir: "2 files", filepath.Join(dir, "a.arrow"): "1 file", filepath.Join(dir, "link"): "2 files"} {
		var r report
		if r.path(h, name, true); len(r.Problems) > 0 || !slices.Equal(r.Facts, []fact{{"path", name + ": tmpfs, " + files}}) {
			t.Errorf("got %+v", r)
		}
	}
}

func TestAFolderThatMayNotBeListed(t *testing.T) {
	if os.Geteuid() == 0 {
		return // root may list every folder
	}
	name := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(name, 0o311); err != nil {
		t.Fatal(err)
	}
	var r report
	if r.path(machine{root: fstest.MapFS{}}, name, true); len(r.Facts) > 0 || len(r.Problems) != 1 || r.Problems[0].Message != name+": permission denied" {
		t.Errorf("got %+v", r)
	}
}

// fakePython writes a program that answers as Python does, and returns its path.
func fakePython(t *testing.T, devices string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	program := `#!/bin/sh
case "$3" in
packages) echo '{"version": "3.12.1", "packages": {"meshfeed": "` + meshfeed.Version() + `", "jax": "0.10.2", "jaxlib": "0.10.2"}}';;
devices) ` + devices + `;;
esac
`
	if err := os.WriteFile(path, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// doctor runs the verb, and returns its report and the fact about JAX.
func doctor(t *testing.T, args ...string) (r report, jax string, code int) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	code = run(context.Background(), append([]string{"doctor", "--json"}, args...), strings.NewReader(""), &out, &diagnostics)
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || diagnostics.Len() > 0 {
		t.Fatalf("%v: %s%s", err, out.String(), diagnostics.String())
	}
	for _, f := range r.Facts {
		if f.Name == "JAX" {
			jax = f.Text
		}
	}
	return r, jax, code
}

// TestDoctorAsksPython asks a JAX with a plugin that prints a line.
func TestDoctorAsksPython(t *testing.T) {
	python := fakePython(t, `echo hello; echo "{\"backend\": \"gpu\", \"devices\": [{\"kind\": \"H100 $XLA_PYTHON_CLIENT_PREALLOCATE\", \"count\": 8}]}"`)
	r, jax, code := doctor(t, "--python", python, t.TempDir())
	if jax != "gpu: 8 × H100 false" || !slices.Contains(r.Facts, fact{"python", "3.12.1 " + python}) || code != exitSuccess {
		t.Errorf("exit %d: %+v", code, r)
	}
}

// TestDoctorWaitsForJAXUntilTheTimeout asks a JAX that never answers, while a child of it
// keeps the pipe open.
func TestDoctorWaitsForJAXUntilTheTimeout(t *testing.T) {
	const bound = 20 * time.Second // 20 times the delay that the pipe gets
	begin := time.Now()
	r, jax, code := doctor(t, "--python", fakePython(t, "sleep 40 & wait"), "--timeout", "100ms", t.TempDir())
	if took := time.Since(begin); took > bound {
		t.Errorf("took %v", took)
	}
	if jax != "" || len(r.Problems) == 0 || !strings.HasPrefix(r.Problems[0].Message, "JAX did not list its devices within 100ms") || code != exitSuccess {
		t.Errorf("exit %d: %s, %+v", code, jax, r.Problems)
	}
}

// TestDoctorReportsFailures asks a JAX that crashes, a JAX that prints no facts, and a Python
// that does not exist.
func TestDoctorReportsFailures(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "python")
	for python, want := range map[string]string{
		fakePython(t, "echo first >&2; echo last words >&2; kill -9 $$"): "JAX lists no devices: signal: killed: last words",
		fakePython(t, "echo hello"):                                      `JAX lists no devices: it printed "hello" instead of a JSON object`,
		missing:                                                          "Python could not be asked: " + missing + ": no such file or directory",
	} {
		r, jax, code := doctor(t, "--python", python, t.TempDir())
		if jax != "" || len(r.Problems) == 0 || r.Problems[0].Message != want || code != exitProblem {
			t.Errorf("exit %d: %+v\nwant %s", code, r.Problems, want)
		}
	}
}

func TestDoctorRejectsATimeout(t *testing.T) {
	var out, diagnostics bytes.Buffer
	code := run(context.Background(), []string{"doctor", "--timeout", "0s"}, strings.NewReader(""), &out, &diagnostics)
	want := "meshfeed: doctor: --timeout is 0s, but must be more than 0\n  usage: meshfeed doctor [PATH…] [flags]\n"
	if code != exitFailure || diagnostics.String() != want {
		t.Errorf("exit %d, %s", code, diagnostics.String())
	}
}
