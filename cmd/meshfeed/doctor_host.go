package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/hostmemory"
)

// machine is where facts about the machine come from: the files of Linux's proc, sys and dev
// below root, and the environment variables that matter. Elsewhere fewer facts are known.
type machine struct {
	root        fs.FS
	environment map[string]string
}

// lines returns the lines of a file; nothing if it cannot be read.
func (m machine) lines(name string) []string {
	text, _ := fs.ReadFile(m.root, name)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func processor() string {
	c := cpuid.CPU
	text := fmt.Sprintf("%s, %d of %d cores", cmp.Or(c.BrandName, "unknown"), runtime.GOMAXPROCS(0), max(c.LogicalCores, runtime.NumCPU()))
	if level := c.X64Level(); level > 0 {
		text += fmt.Sprintf(", x86-64-v%d", level)
	}
	if c.Cache.L3 > 0 {
		text += ", last-level cache " + sized(int64(c.Cache.L3))
	}
	return text
}

// leastMemory is less than what a small training program takes.
const leastMemory = 1 << 30

// host describes memory, limits, accelerator and environment of the machine.
func (r *report) host(m machine) {
	const bound = "; max_host_bytes bounds what a loader takes"
	memory := hostmemory.Read(m.root)
	if memory.Total > 0 {
		text := sized(memory.Total) + ", of which " + sized(memory.Free) + " are free"
		if memory.Limit > 0 {
			text += fmt.Sprintf("; limit of the control group %s, of which %s are free", sized(memory.Limit), sized(memory.LimitFree))
		}
		r.fact("memory", text)
	}
	if memory.Free > 0 && memory.Free < leastMemory {
		r.problem(problem.Warning, "only "+sized(memory.Free)+" of memory are free", "end other programs"+bound)
	}
	if memory.Limit > 0 && memory.LimitFree < leastMemory {
		r.problem(problem.Warning, fmt.Sprintf("only %s of the %s that the control group may take are free", sized(memory.LimitFree), sized(memory.Limit)), "raise the limit of the control group, which Slurm's --mem and the memory limit of a container set"+bound)
	}
	if files := m.limit("Max open files"); files != 0 {
		r.fact("limits", fmt.Sprintf("open files %s, locked memory %s, address space %s",
			bounded(files, grouped), bounded(m.limit("Max locked memory"), sized), bounded(m.limit("Max address space"), sized)))
	}
	_, after, _ := strings.Cut(m.lines("sys/kernel/mm/transparent_hugepage/enabled")[0], "[")
	pages, _, _ := strings.Cut(after, "]")
	r.fact("huge pages", pages)
	if pages == "never" {
		r.problem(problem.Info, "transparent huge pages are off, so large batches take more time", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root")
	}
	r.fact("hardware", m.accelerator())
	for _, name := range slices.Sorted(maps.Keys(m.environment)) {
		r.fact("variable", name+"="+m.environment[name])
	}
}

// limit returns a soft limit of this process; -1 for unlimited, and 0 if it is not known.
// Go raises the soft limit of open files to the hard limit, here and in the C library.
func (m machine) limit(name string) int64 {
	for _, line := range m.lines("proc/self/limits") {
		if words := strings.Fields(strings.TrimPrefix(line, name)); strings.HasPrefix(line, name) && len(words) > 0 {
			if words[0] == "unlimited" {
				return -1
			}
			n, _ := strconv.ParseInt(words[0], 10, 64)
			return n
		}
	}
	return 0
}

// bounded formats a limit.
func bounded(limit int64, format func(int64) string) string {
	if limit < 0 {
		return "unlimited"
	}
	return format(limit)
}

// accelerator names the accelerator of the machine; "" if none is found. JAX itself finds
// accelerators by these device files and PCI numbers (jax/_src/hardware_utils.py).
func (m machine) accelerator() string {
	for _, device := range []struct{ file, name string }{
		{"dev/nvidia0", "an NVIDIA GPU"}, {"dev/nvidiactl", "an NVIDIA GPU"}, {"dev/dxg", "a GPU"}, {"dev/kfd", "an AMD GPU"},
	} {
		if _, err := fs.Stat(m.root, device.file); err == nil {
			return device.name
		}
	}
	tpus := []string{"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}
	vendors, _ := fs.Glob(m.root, "sys/bus/pci/devices/*/vendor")
	for _, file := range vendors {
		if m.lines(file)[0] == "0x1ae0" && slices.Contains(tpus, m.lines(path.Join(path.Dir(file), "device"))[0]) {
			return "a TPU"
		}
	}
	return ""
}

// relevant returns the environment variables that change how meshfeed, JAX or Go work, or
// that tell JAX about a job.
func relevant(environment []string) map[string]string {
	prefixes := []string{"MESHFEED_", "JAX_", "XLA_", "LIBTPU_", "TPU_", "NCCL_", "MEGASCALE_"}
	names := strings.Fields(`GOMAXPROCS GOMEMLIMIT GOGC GODEBUG CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES OMP_NUM_THREADS
		LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH SLURM_JOB_ID SLURM_NTASKS SLURM_PROCID SLURM_LOCALID
		OMPI_MCA_orte_hnp_uri OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_SIZE PMI_RANK`)
	found := map[string]string{}
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		matters := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(names, name) || slices.ContainsFunc(prefixes, matters) {
			found[name] = value
		}
	}
	return found
}

// spareDescriptors are open files that a training program needs besides the data.
const spareDescriptors = 64

// paths describes where the data is, and the current folder, which is not data.
func (r *report) paths(m machine, paths []string) {
	data := 0
	for _, name := range paths {
		data += r.path(m, name, true)
	}
	if !slices.Contains(paths, ".") {
		r.path(m, ".", false)
	}
	if limit, need := m.limit("Max open files"), data+spareDescriptors; limit > 0 && int64(need) > limit {
		r.problem(problem.Warning, fmt.Sprintf("a process may open %s, but a dataset keeps %s open, and a program needs %d more", counted(limit, "file"), counted(data, "file"), spareDescriptors), fmt.Sprintf("ulimit -Hn %d, or write fewer, larger files", need))
	}
}

// path describes where a path is, and returns the number of its files.
func (r *report) path(m machine, name string, data bool) int {
	files, err := filesOf(name)
	if err != nil {
		_, message, _ := strings.Cut(err.Error(), " ") // after the name of the call
		r.problem(problem.Error, message, "name a file or folder that exists and that this user may read")
		return 0
	}
	full, err := filepath.Abs(name)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		full = name
	}
	fileSystem := cmp.Or(mounted(m.lines("proc/self/mountinfo"), full), "unknown")
	text := name + ": " + fileSystem
	if waits(fileSystem) {
		text += " (network)"
		r.problem(problem.Info, name+" is on "+fileSystem+", where a read waits for a server", "raise prefetch, or copy the files to a local disk")
	}
	if data && files > 0 {
		text += ", " + counted(files, "file")
	}
	r.fact("path", text)
	return files
}

// filesOf returns the number of files in a folder, or 1 for a file.
func filesOf(name string) (n int, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return 1, err
	}
	entries, err := os.ReadDir(name)
	for _, e := range entries {
		if e.Type().IsRegular() {
			n++
		}
	}
	return n, err
}

// mounted returns the type of the file system that holds a path, from the lines of
// /proc/self/mountinfo: the last mount with the longest mount point that contains it.
func mounted(mounts []string, full string) (fileSystem string) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	longest := -1
	for _, line := range mounts {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 1 {
			continue
		}
		point := unescape.Replace(left[4])
		inside := full == point || strings.HasPrefix(full, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest {
			longest, fileSystem = len(point), right[0]
		}
	}
	return fileSystem
}

// waits reports whether reads of a file system, such as fuse.gcsfuse, wait for a server.
func waits(fileSystem string) bool {
	kind, _, _ := strings.Cut(fileSystem, ".")
	return slices.Contains(strings.Fields("nfs nfs4 cifs smb3 smbfs ceph lustre gpfs beegfs glusterfs 9p afs ocfs2 fuse"), kind)
}
