package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// hostInfo describes the machine and the process.
type hostInfo struct {
	CPU         cpuInfo           `json:"cpu"`
	Memory      memoryInfo        `json:"memory"`
	Limits      limitInfo         `json:"limits"`
	HugePages   string            `json:"huge_pages,omitempty"` // "always", "madvise" or "never"
	Accelerator string            `json:"accelerator,omitempty"`
	Environment map[string]string `json:"environment"`
}

// cpuInfo describes the processor.
type cpuInfo struct {
	Name       string `json:"name,omitempty"`
	Cores      int    `json:"cores"` // cores of the machine
	Usable     int    `json:"usable"`
	Level      int    `json:"x86_64_level,omitempty"`
	CacheBytes int    `json:"last_level_cache_bytes,omitempty"`
	Kernels    string `json:"kernels"` // how rows are copied
}

// memoryInfo describes the memory in bytes; 0 means unknown, and without a limit.
type memoryInfo struct {
	TotalBytes int64 `json:"total_bytes"`
	FreeBytes  int64 `json:"free_bytes"`
	LimitBytes int64 `json:"limit_bytes,omitempty"` // limit of the control group

	// LimitFreeBytes is how much the control group may still take.
	LimitFreeBytes int64 `json:"limit_free_bytes,omitempty"`
}

// limitInfo holds limits of this process; 0 means unknown, and -1 means unlimited.
type limitInfo struct {
	OpenFiles    int64 `json:"open_files"`
	LockedBytes  int64 `json:"locked_bytes"`
	AddressBytes int64 `json:"address_bytes"`
}

// pathInfo describes where a path is.
type pathInfo struct {
	Path       string `json:"path"`
	FileSystem string `json:"file_system,omitempty"`
	Kind       string `json:"kind,omitempty"` // "local", "network", "overlay", "memory" or "unknown"
	Files      int    `json:"files"`          // data files in this folder, or 1
	Error      string `json:"error,omitempty"`
}

// hostFacts reads the files of Linux's proc and sys below root. Elsewhere fewer facts are
// known.
func hostFacts(root fs.FS, environment []string) hostInfo {
	meminfo := lines(root, "proc/meminfo")
	limit, limitFree := groupMemory(root)
	return hostInfo{
		CPU: cpuInfo{
			Name: cpuid.CPU.BrandName, Cores: max(cpuid.CPU.LogicalCores, runtime.NumCPU()), Usable: runtime.GOMAXPROCS(0),
			Level: cpuid.CPU.X64Level(), CacheBytes: max(cpuid.CPU.Cache.L3, 0), Kernels: kernels(runtime.GOARCH),
		},
		Memory: memoryInfo{
			TotalBytes: 1024 * number(meminfo, "MemTotal:"), FreeBytes: 1024 * number(meminfo, "MemAvailable:"),
			LimitBytes: limit, LimitFreeBytes: limitFree,
		},
		Limits:      limits(lines(root, "proc/self/limits")),
		HugePages:   chosen(lines(root, "sys/kernel/mm/transparent_hugepage/enabled")),
		Accelerator: accelerator(root),
		Environment: relevant(environment),
	}
}

// kernels describes how package internal/gather copies rows on an architecture.
func kernels(arch string) string {
	if arch == "amd64" {
		return "assembly with prefetch and streaming stores"
	}
	return "Go"
}

// lines reads a file; it returns nil if that is impossible.
func lines(root fs.FS, name string) (all []string) {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

// number returns the number after a name at the beginning of a line; 0 without such a line.
func number(all []string, name string) int64 {
	for _, line := range all {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, _ := strconv.ParseInt(words[1], 10, 64)
			return n
		}
	}
	return 0
}

// groupFiles names the files of a control group that describe its memory.
type groupFiles struct{ base, limit, used, cached string }

var groupVersions = map[bool]groupFiles{
	false: {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	true:  {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
}

// groupMemory returns the least memory limit of the control group of this process and of
// its parents, and the least that one of them may still take; 0 and 0 without a limit. In a
// container, the path of the process's own group may not exist. The inactive pages of files
// count as free, because the kernel drops them first.
func groupMemory(root fs.FS) (limit, free int64) {
	limit, free = math.MaxInt64, math.MaxInt64
	for _, line := range lines(root, "proc/self/cgroup") {
		parts := strings.SplitN(line, ":", 3) // hierarchy:controllers:path; version 2 is "0::path"
		if len(parts) != 3 || parts[1] != "" && !slices.Contains(strings.Split(parts[1], ","), "memory") {
			continue
		}
		files := groupVersions[parts[1] == ""]
		for dir := path.Join(files.base, path.Clean("/"+parts[2])); strings.HasPrefix(dir, files.base); dir = path.Dir(dir) {
			n, err := strconv.ParseInt(strings.Join(lines(root, path.Join(dir, files.limit)), ""), 10, 64)
			if err != nil || n > 1<<60 { // version 1 writes a huge number for no limit
				continue
			}
			used, _ := strconv.ParseInt(strings.Join(lines(root, path.Join(dir, files.used)), ""), 10, 64)
			used -= number(lines(root, path.Join(dir, "memory.stat")), files.cached)
			limit, free = min(limit, n), min(free, max(n-used, 0))
		}
	}
	if limit == math.MaxInt64 {
		return 0, 0
	}
	return limit, free
}

// limits parses /proc/self/limits. Go raises the soft limit of open files to the hard
// limit, here and in the C library, so the soft limits are what counts.
func limits(all []string) (l limitInfo) {
	for name, field := range map[string]*int64{"Max open files": &l.OpenFiles, "Max locked memory": &l.LockedBytes, "Max address space": &l.AddressBytes} {
		for _, line := range all {
			words := strings.Fields(strings.TrimPrefix(line, name))
			if !strings.HasPrefix(line, name) || len(words) == 0 {
				continue
			}
			*field = -1
			if words[0] != "unlimited" {
				*field, _ = strconv.ParseInt(words[0], 10, 64)
			}
		}
	}
	return l
}

// chosen returns the word in brackets.
func chosen(all []string) string {
	_, after, _ := strings.Cut(strings.Join(all, " "), "[")
	word, _, _ := strings.Cut(after, "]")
	return word
}

// accelerator names the accelerator of the machine; "" if none is found. The device files
// and PCI numbers are those by which JAX itself finds them (jax/_src/hardware_utils.py).
func accelerator(root fs.FS) string {
	for _, device := range []struct{ file, name string }{
		{"dev/nvidia0", "an NVIDIA GPU"}, {"dev/nvidiactl", "an NVIDIA GPU"}, {"dev/dxg", "a GPU"}, {"dev/kfd", "an AMD GPU"},
	} {
		if _, err := fs.Stat(root, device.file); err == nil {
			return device.name
		}
	}
	tpus := []string{"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}
	vendors, _ := fs.Glob(root, "sys/bus/pci/devices/*/vendor")
	for _, file := range vendors {
		vendor := strings.Join(lines(root, file), "")
		device := strings.Join(lines(root, path.Join(path.Dir(file), "device")), "")
		if vendor == "0x1ae0" && slices.Contains(tpus, device) {
			return "a TPU"
		}
	}
	return ""
}

// Environment variables that change how meshfeed, JAX or Go work, or from which JAX finds
// out about a job.
var (
	prefixes  = []string{"MESHFEED_", "JAX_", "XLA_", "LIBTPU_", "TPU_", "NCCL_", "MEGASCALE_"}
	variables = []string{
		"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "OMP_NUM_THREADS",
		"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID",
		"OMPI_MCA_orte_hnp_uri", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK",
	}
)

// relevant returns the variables that matter, with their values.
func relevant(environment []string) map[string]string {
	found := map[string]string{}
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		matters := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(variables, name) || slices.ContainsFunc(prefixes, matters) {
			found[name] = value
		}
	}
	return found
}

// pathFactsOf finds the file system of a path, and counts the files of a folder.
func pathFactsOf(root fs.FS, name string) pathInfo {
	p := pathInfo{Path: name}
	info, err := os.Stat(name)
	if err != nil {
		p.Error = strings.TrimPrefix(err.Error(), "stat ")
		return p
	}
	p.Files = 1
	if info.IsDir() {
		entries, err := os.ReadDir(name)
		if err != nil {
			p.Error = strings.TrimPrefix(err.Error(), "open ")
			return p
		}
		p.Files = 0
		for _, e := range entries {
			if e.Type().IsRegular() {
				p.Files++
			}
		}
	}
	full, err := filepath.Abs(name)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		full = name
	}
	p.FileSystem = cmp.Or(mounted(lines(root, "proc/self/mountinfo"), full), "unknown")
	p.Kind = kindOf(p.FileSystem)
	return p
}

// mounted returns the type of the file system that holds a path, from the lines of
// /proc/self/mountinfo: the last mount with the longest mount point that contains it.
func mounted(mounts []string, full string) (fileSystem string) {
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

// unescape undoes the escapes of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// kinds lists the file systems that are not on a disk of this machine.
var kinds = map[string][]string{
	"network": {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "9p", "afs", "ocfs2", "fuse"},
	"overlay": {"overlay", "aufs"},
	"memory":  {"tmpfs", "ramfs"},
	"unknown": {"unknown"},
}

func kindOf(fileSystem string) string {
	kind, _, _ := strings.Cut(fileSystem, ".") // such as fuse.gcsfuse
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if slices.Contains(kinds[name], kind) {
			return name
		}
	}
	return "local"
}

// print writes the lines of the report about the machine.
func (h hostInfo) print(row func(name, text string)) {
	cpu := fmt.Sprintf("%s, %d of %d cores", cmp.Or(h.CPU.Name, "unknown"), h.CPU.Usable, h.CPU.Cores)
	if h.CPU.Level > 0 {
		cpu += fmt.Sprintf(", x86-64-v%d", h.CPU.Level)
	}
	if h.CPU.CacheBytes > 0 {
		cpu += ", last-level cache " + sized(int64(h.CPU.CacheBytes))
	}
	row("processor", cpu)
	row("copies", h.CPU.Kernels)
	if h.Memory.TotalBytes > 0 {
		memory := sized(h.Memory.TotalBytes) + ", of which " + sized(h.Memory.FreeBytes) + " are free"
		if h.Memory.LimitBytes > 0 {
			memory += fmt.Sprintf("; limit of the control group %s, of which %s are free", sized(h.Memory.LimitBytes), sized(h.Memory.LimitFreeBytes))
		}
		row("memory", memory)
	}
	if h.Limits != (limitInfo{}) {
		row("limits", fmt.Sprintf("open files %s, locked memory %s, address space %s",
			bounded(h.Limits.OpenFiles, grouped), bounded(h.Limits.LockedBytes, sized), bounded(h.Limits.AddressBytes, sized)))
	}
	row("huge pages", h.HugePages)
	row("hardware", h.Accelerator)
	for _, name := range slices.Sorted(maps.Keys(h.Environment)) {
		row("variable", name+"="+h.Environment[name])
	}
}

// bounded formats a limit.
func bounded(limit int64, format func(int64) string) string {
	if limit < 0 {
		return "unlimited"
	}
	return format(limit)
}
