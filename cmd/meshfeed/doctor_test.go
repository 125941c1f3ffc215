package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/meshfeed/meshfeed"
	"github.com/meshfeed/meshfeed/core/problem"
)

// healthy returns facts that show no problem.
func healthy() *facts {
	return &facts{
		Build: buildInfo{Version: "1.2.3", Go: "go1.26.1", Platform: "linux/amd64", Page: true},
		Python: pythonInfo{
			Executable: "/env/bin/python", Version: "3.12.1", Plugins: []string{"jax-cuda12-plugin 0.10.2"},
			Packages: map[string]string{"meshfeed": "1.2.3", "jax": "0.10.2", "jaxlib": "0.10.1", "numpy": "2.4.6", "pyarrow": ""},
			Library:  &libraryInfo{Path: "/env/libmeshfeed.so.1", ABI: "1.0"},
		},
		JAX: &jaxInfo{Backend: "gpu", Devices: []deviceInfo{{Kind: "NVIDIA H100 80GB HBM3", Count: 8, MemoryBytes: 64 << 30}}},
		Host: hostInfo{
			CPU:    cpuInfo{Name: "Xeon", Cores: 64, Usable: 16, Level: 4, CacheBytes: 32 << 20, Kernels: kernels("amd64")},
			Memory: memoryInfo{TotalBytes: 512 << 30, FreeBytes: 500 << 30, LimitBytes: 64 << 30, LimitFreeBytes: 60 << 30},
			Limits: limitInfo{OpenFiles: 4096, LockedBytes: 8 << 20, AddressBytes: -1}, HugePages: "madvise", Accelerator: "an NVIDIA GPU",
			Environment: map[string]string{"XLA_FLAGS": "--xla_a=1", "JAX_LOG": "\x1b[31m"},
		},
		Paths: []pathInfo{{Path: "data", FileSystem: "ext4", Kind: "local", Files: 1200}, {Path: ".", FileSystem: "overlay", Kind: "overlay"}},
	}
}

func TestDoctorPrintsFacts(t *testing.T) {
	var out bytes.Buffer
	if err := printFacts(&out, healthy()); err != nil {
		t.Fatal(err)
	}
	want := `meshfeed    1.2.3, go1.26.1, linux/amd64, with page, without xla
python      3.12.1 /env/bin/python
packages    jax 0.10.2, jaxlib 0.10.1, meshfeed 1.2.3, numpy 2.4.6, pyarrow (missing)
plugins     jax-cuda12-plugin 0.10.2
C library   /env/libmeshfeed.so.1, ABI 1.0
JAX         gpu: 8 × NVIDIA H100 80GB HBM3 with 64.0 GiB
processor   Xeon, 16 of 64 cores, x86-64-v4, last-level cache 32.0 MiB
copies      assembly with prefetch and streaming stores
memory      512.0 GiB, of which 500.0 GiB are free; limit of the control group 64.0 GiB, of which 60.0 GiB are free
limits      open files 4,096, locked memory 8.0 MiB, address space unlimited
huge pages  madvise
hardware    an NVIDIA GPU
variable    JAX_LOG=\x1b[31m
variable    XLA_FLAGS=--xla_a=1
path        data: ext4 (local), 1,200 files
path        .: overlay (overlay)

no problem found
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestDoctorPrintsProblems(t *testing.T) {
	f := healthy()
	f.Problems = []symptom{{problem.Error, "no \x07 library", "make lib"}, {problem.Info, "no page", "make page"}}
	var out bytes.Buffer
	if err := printFacts(&out, f); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\n\n")
	if want := "error: no \\a library\n  make lib\ninfo: no page\n  make page\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDoctorDiagnoses changes healthy facts one at a time. Every change shows one problem.
func TestDoctorDiagnoses(t *testing.T) {
	if found := diagnose(healthy(), time.Minute); found == nil || len(found) > 0 {
		t.Errorf("JSON needs an empty list: %v", found)
	}
	for _, c := range []struct {
		name   string
		change func(*facts)
		want   string // "" for no problem
	}{
		{"no Python", func(f *facts) { f.Python = pythonInfo{Executable: "python3", Error: "executable file not found"} },
			"info: Python could not be asked: executable file not found; repair this Python, or name another one by --python"},
		{"a named Python", func(f *facts) { f.Python = pythonInfo{Executable: "python3", Error: "no NumPy", named: true} },
			"error: Python could not be asked: no NumPy; repair this Python, or name another one by --python"},
		{"no package", func(f *facts) {
			f.Python = pythonInfo{Executable: "/usr/bin/python3", Error: "exit status 1: ModuleNotFoundError: No module named 'meshfeed'"}
		}, "info: /usr/bin/python3 has no package meshfeed; name another Python by --python, or install the package there"},
		{"another version", func(f *facts) { f.Python.Packages["meshfeed"] = "1.1.0" },
			"warning: the package has version 1.1.0, and this command 1.2.3; use the command of the package: python -m meshfeed"},
		{"no library", func(f *facts) {
			f.Python.Library = &libraryInfo{Path: "x", Error: "python: no library; reinstall the package"}
		}, "error: python: no library; reinstall the package"},
		{"no JAX", func(f *facts) { f.Python.Packages["jax"] = ""; f.JAX = nil },
			`warning: JAX is not installed, so loaders give NumPy arrays only; pip install "jax>=0.8", or the build for your accelerator`},
		{"old JAX", func(f *facts) { f.Python.Packages["jax"] = "0.7.9"; f.Python.Packages["jaxlib"] = "0.7.8" },
			`error: JAX 0.7.9 is older than 0.8; pip install -U "jax>=0.8"`},
		{"new JAX", func(f *facts) { f.Python.Packages["jax"] = "1.0.0"; f.Python.Packages["jaxlib"] = "1.0.1" }, ""},
		{"JAX and jaxlib", func(f *facts) { f.Python.Packages["jaxlib"] = "0.9.2" },
			"warning: jax 0.10.2 and jaxlib 0.9.2 are of different releases; install both of one release: pip install -U jax jaxlib"},
		{"held", func(f *facts) { f.JAX = &jaxInfo{TimedOut: true, Error: "x"} },
			"warning: JAX did not list its devices within 1m0s; another program may hold the TPU or GPU, or the driver does not answer; end that program; or set JAX_PLATFORMS=cpu; or wait longer by --timeout"},
		{"broken JAX", func(f *facts) { f.JAX = &jaxInfo{Error: "RuntimeError: no backend"} },
			"error: JAX lists no devices: RuntimeError: no backend; repair the installation of JAX, or choose another backend by JAX_PLATFORMS"},
		{"unused GPU", func(f *facts) { f.JAX = &jaxInfo{Backend: "cpu"} },
			"warning: this machine has an NVIDIA GPU, but JAX uses the CPU; install the build of JAX for it: https://docs.jax.dev/en/latest/installation.html"},
		{"hidden GPU", func(f *facts) {
			f.JAX = &jaxInfo{Backend: "cpu"}
			f.Host.Environment["JAX_PLATFORMS"] = "cpu"
		}, ""},
		{"little memory", func(f *facts) { f.Host.Memory.FreeBytes = 512 << 20 },
			"warning: only 512.0 MiB of memory are free; end other programs; max_host_bytes bounds what a loader takes"},
		{"little memory in the control group", func(f *facts) { f.Host.Memory.LimitFreeBytes = 0 },
			"warning: only 0 B of the 64.0 GiB that the control group may take are free; raise the limit of the control group, which Slurm's --mem and the memory limit of a container set; max_host_bytes bounds what a loader takes"},
		{"a small limit", func(f *facts) { f.Host.Memory.LimitBytes, f.Host.Memory.LimitFreeBytes = 512<<20, 400<<20 },
			"warning: only 400.0 MiB of the 512.0 MiB that the control group may take are free; raise the limit of the control group, which Slurm's --mem and the memory limit of a container set; max_host_bytes bounds what a loader takes"},
		{"no limit", func(f *facts) { f.Host.Memory.LimitBytes, f.Host.Memory.LimitFreeBytes = 0, 0 }, ""},
		{"huge pages", func(f *facts) { f.Host.HugePages = "never" },
			"info: transparent huge pages are off, so large batches take more time; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root"},
		{"no path", func(f *facts) { f.Paths[0] = pathInfo{Path: "x", Error: "x: no such file or directory"} },
			"error: x: no such file or directory; name a file or folder that exists and that this user may read"},
		{"network", func(f *facts) { f.Paths[0].FileSystem, f.Paths[0].Kind = "nfs4", "network" },
			"info: data is on nfs4, where a read waits for a server; raise prefetch, or copy the files to a local disk"},
		{"open files", func(f *facts) { f.Paths[0].Files = 4033 },
			"warning: a process may open 4,096 files, but a dataset keeps 4,033 files open, and a program needs 64 more; ulimit -Hn 4097, or write fewer, larger files"},
		{"a low limit", func(f *facts) { f.Paths, f.Host.Limits.OpenFiles = nil, 10 },
			"warning: a process may open 10 files, but a dataset keeps 0 files open, and a program needs 64 more; ulimit -Hn 64, or write fewer, larger files"},
		{"just enough open files", func(f *facts) { f.Paths[0].Files = 4032 }, ""},
		{"no page", func(f *facts) { f.Build.Page = false },
			"info: this build has no browser page; install a wheel, or without MESHFEED_PAGE=0; in a checkout run: make page lib"},
	} {
		f := healthy()
		c.change(f)
		var got []string
		for _, s := range diagnose(f, time.Minute) {
			got = append(got, string(s.Severity)+": "+s.Message+"; "+s.Remedy)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestDoctorPutsErrorsFirst(t *testing.T) {
	f := healthy()
	f.Build.Page = false
	f.Python.Packages["jaxlib"] = "0.9.2"
	f.Python.Library.Error = "x"
	f.Host.HugePages = "never"
	var got []problem.Severity
	for _, s := range diagnose(f, time.Minute) {
		got = append(got, s.Severity)
	}
	if want := []problem.Severity{problem.Error, problem.Warning, problem.Info, problem.Info}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestFactsOfTheHost(t *testing.T) {
	root := fstest.MapFS{
		"proc/meminfo":                               file("MemTotal:       8000 kB\nMemFree: 1 kB\nMemAvailable:    6000 kB\n"),
		"proc/self/cgroup":                           file("0::/job/a\n"),
		"sys/fs/cgroup/job/a/memory.max":             file("max\n"),
		"sys/fs/cgroup/memory.max":                   file("9000000\n"),
		"sys/fs/cgroup/memory.current":               file("8900000\n"),
		"sys/fs/cgroup/memory.stat":                  file("anon 1\ninactive_file 200000\n"),
		"sys/fs/cgroup/job/memory.current":           file("4800000\n"),
		"sys/fs/cgroup/job/memory.max":               file("5000000\n"),
		"proc/self/limits":                           file("Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \nMax locked memory         unlimited            unlimited            bytes     \nMax address space         2097152              unlimited            bytes     \n"),
		"sys/kernel/mm/transparent_hugepage/enabled": file("always [madvise] never\n"),
		"sys/bus/pci/devices/0000:00:04.0/vendor":    file("0x1ae0\n"),
		"sys/bus/pci/devices/0000:00:04.0/device":    file("0x0042\n"), // a network card
		"sys/bus/pci/devices/0000:00:05.0/vendor":    file("0x1ae0\n"),
		"sys/bus/pci/devices/0000:00:05.0/device":    file("0x0063\n"),
	}
	h := hostFacts(root, []string{"HOME=/root", "JAX_PLATFORMS=tpu", "XLA_FLAGS=--a=1 --b=2", "GOGC=", "SLURM_JOB_ID=7", "AWS_SECRET=x"})
	h.CPU = cpuInfo{}
	want := hostInfo{
		Memory:    memoryInfo{TotalBytes: 8000 << 10, FreeBytes: 6000 << 10, LimitBytes: 5000000, LimitFreeBytes: 200000},
		Limits:    limitInfo{OpenFiles: 1024, LockedBytes: -1, AddressBytes: 2097152},
		HugePages: "madvise", Accelerator: "a TPU",
		Environment: map[string]string{"JAX_PLATFORMS": "tpu", "XLA_FLAGS": "--a=1 --b=2", "GOGC": "", "SLURM_JOB_ID": "7"},
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("got  %+v\nwant %+v", h, want)
	}
	empty := hostFacts(fstest.MapFS{}, nil)
	empty.CPU = cpuInfo{}
	if !reflect.DeepEqual(empty, hostInfo{Environment: map[string]string{}}) {
		t.Errorf("without files: %+v", empty)
	}
	old := fstest.MapFS{
		"proc/self/cgroup":                                    file("5:cpu,memory:/docker/1\n4:pids:/\n"),
		"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("700000\n"),
		"sys/fs/cgroup/memory/memory.usage_in_bytes":          file("650000\n"),
		"sys/fs/cgroup/memory/memory.stat":                    file("inactive_file 1\ntotal_inactive_file 10000\n"),
		"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": file("9223372036854771712\n"),
		"dev/nvidiactl":                                       file(""),
	}
	if h := hostFacts(old, nil); h.Memory.LimitBytes != 700000 || h.Memory.LimitFreeBytes != 60000 || h.Accelerator != "an NVIDIA GPU" {
		t.Errorf("got %+v", h)
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
		"/": "ext4 local", "/home/x": "ext4 local", "/data": "nfs4 network", "/data/a/b": "nfs4 network", "/database": "ext4 local",
		"/my disk/a": "fuse.gcsfuse network", "/data/fast/x": "lustre network", "/run": "overlay overlay",
	} {
		fileSystem := mounted(mounts, path)
		if got := fileSystem + " " + kindOf(fileSystem); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if kindOf("tmpfs") != "memory" || kindOf("unknown") != "unknown" {
		t.Error("kinds are wrong")
	}
}

func TestFactsOfAPath(t *testing.T) {
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
	root := fstest.MapFS{"proc/self/mountinfo": file("22 1 8:1 / / rw - ext4 x rw\n23 22 0:5 / " + real + " rw - nfs x rw\n")}
	for name, files := range map[string]int{dir: 2, filepath.Join(dir, "a.arrow"): 1, filepath.Join(dir, "link"): 2} {
		if p := pathFactsOf(root, name); p != (pathInfo{Path: name, FileSystem: "nfs", Kind: "network", Files: files}) {
			t.Errorf("got %+v", p)
		}
	}
	missing := filepath.Join(dir, "c")
	if p := pathFactsOf(root, missing); p != (pathInfo{Path: missing, Error: missing + ": no such file or directory"}) {
		t.Errorf("got %+v", p)
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
	if p := pathFactsOf(fstest.MapFS{}, name); p.Error != name+": permission denied" || p.FileSystem != "" {
		t.Errorf("got %+v", p)
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

func doctor(t *testing.T, args ...string) (facts, int) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	code := run(context.Background(), append([]string{"doctor", "--json"}, args...), strings.NewReader(""), &out, &diagnostics)
	var f facts
	if err := json.Unmarshal(out.Bytes(), &f); err != nil || diagnostics.Len() > 0 {
		t.Fatalf("%v: %s%s", err, out.String(), diagnostics.String())
	}
	return f, code
}

func TestDoctorAsksPython(t *testing.T) {
	python := fakePython(t, `echo "{\"backend\": \"gpu\", \"devices\": [{\"kind\": \"H100\", \"count\": 8}], \"error\": \"$XLA_PYTHON_CLIENT_PREALLOCATE\"}"`)
	f, code := doctor(t, "--python", python, t.TempDir())
	if f.JAX == nil || f.JAX.Backend != "gpu" || f.JAX.Error != "false" || f.Python.Version != "3.12.1" || code != exitProblem {
		t.Errorf("exit %d: %+v, %+v", code, f.Python, f.JAX)
	}
}

// TestDoctorWaitsForJAXUntilTheTimeout asks a JAX that never answers, while a child of it
// keeps the pipe open.
func TestDoctorWaitsForJAXUntilTheTimeout(t *testing.T) {
	const bound = 20 * time.Second // 20 times the delay that the pipe gets
	begin := time.Now()
	f, code := doctor(t, "--python", fakePython(t, "sleep 40 & wait"), "--timeout", "100ms", t.TempDir())
	if took := time.Since(begin); took > bound {
		t.Errorf("took %v", took)
	}
	if f.JAX == nil || !f.JAX.TimedOut || len(f.Problems) == 0 || !strings.HasPrefix(f.Problems[0].Message, "JAX did not list its devices within 100ms") || code != exitSuccess {
		t.Errorf("exit %d: %+v, %+v", code, f.JAX, f.Problems)
	}
}

func TestDoctorReportsACrashOfJAX(t *testing.T) {
	f, code := doctor(t, "--python", fakePython(t, "echo first >&2; echo last words >&2; kill -9 $$"), t.TempDir())
	if f.JAX == nil || f.JAX.Error != "signal: killed: last words" || f.JAX.TimedOut || code != exitProblem {
		t.Errorf("exit %d: %+v", code, f.JAX)
	}
}

func TestDoctorWithoutPython(t *testing.T) {
	f, code := doctor(t, "--python", filepath.Join(t.TempDir(), "python"), t.TempDir())
	if f.JAX != nil || !strings.HasSuffix(f.Python.Error, "/python: no such file or directory") || strings.Contains(f.Python.Error, "exec") || code != exitProblem {
		t.Errorf("exit %d: %+v", code, f.Python)
	}
}

// TestDoctorReadsTheLastLine asks a JAX with a plugin that prints a line, and one that
// prints nothing else.
func TestDoctorReadsTheLastLine(t *testing.T) {
	f, code := doctor(t, "--python", fakePython(t, `echo hello; echo '{"backend": "gpu"}'`), t.TempDir())
	if f.JAX == nil || f.JAX.Backend != "gpu" || f.JAX.Error != "" || code != exitSuccess {
		t.Errorf("exit %d: %+v", code, f.JAX)
	}
	f, code = doctor(t, "--python", fakePython(t, "echo hello"), t.TempDir())
	if f.JAX == nil || f.JAX.Error != `it printed "hello" instead of a JSON object` || code != exitProblem {
		t.Errorf("exit %d: %+v", code, f.JAX)
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
