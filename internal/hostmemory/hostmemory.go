// Package hostmemory reads how much memory a machine has, and how much of it this process
// may take. A container or a job of Slurm runs in a control group with a limit, and the
// kernel kills a process above it, however much of the machine is free.
package hostmemory

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Memory holds sizes in bytes. 0 means unknown.
type Memory struct {
	Total, Free int64 // memory of the machine

	// Limit is the least limit of the control group of this process and of its parents, and
	// LimitFree the least that one of them may still take. Both are 0 without a limit.
	Limit, LimitFree int64
}

// Free returns how many bytes of files can be held in memory; 0 if the system does not
// report it.
func Free() int64 { return Read(os.DirFS("/")).available() }

func (m Memory) available() int64 {
	if m.Limit > 0 {
		return min(m.Free, m.LimitFree)
	}
	return m.Free
}

// Read reads the files of Linux's proc and sys below root. Elsewhere nothing is known. Cached
// pages of files count as free, because the kernel can drop them.
func Read(root fs.FS) Memory {
	m := Memory{Total: 1024 * field(root, "proc/meminfo", "MemTotal:"), Free: 1024 * field(root, "proc/meminfo", "MemAvailable:")}
	limit, free := int64(math.MaxInt64), int64(math.MaxInt64)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path; version 2 is "0::path".
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		v := version2
		if parts[1] != "" {
			v = version1
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		l, f := v.least(root, parts[2])
		limit, free = min(limit, l), min(free, f)
	}
	if limit < math.MaxInt64 {
		m.Limit, m.LimitFree = limit, free
	}
	return m
}

// files names the files of a control group.
type files struct {
	base, limit, usage string
	cached             []string
}

var (
	version1 = files{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
	version2 = files{"sys/fs/cgroup", "memory.max", "memory.current", []string{"inactive_file", "active_file"}}
)

// least returns the least limit of a control group and of its parents, and the least that
// one of them may still take; math.MaxInt64 without a limit. It skips groups without readable
// files: in a container, the path of the process's own group may not exist.
func (v files) least(root fs.FS, group string) (limit, free int64) {
	limit, free = math.MaxInt64, math.MaxInt64
	for dir := path.Join(v.base, path.Clean("/"+group)); strings.HasPrefix(dir, v.base); dir = path.Dir(dir) {
		most, ok := number(root, path.Join(dir, v.limit))
		used, ok2 := number(root, path.Join(dir, v.usage))
		if !ok || !ok2 || most > 1<<60 { // version 1 writes a huge number for no limit
			continue
		}
		for _, name := range v.cached {
			used -= field(root, path.Join(dir, "memory.stat"), name)
		}
		limit, free = min(limit, most), min(free, max(most-max(used, 0), 0))
	}
	return limit, free
}

// number reads a file that holds one number. It is false if the file cannot be read, and
// for "max", which means unlimited.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field reads the number after a name at the beginning of a line; 0 without such a line.
func field(root fs.FS, file, name string) int64 {
	f, err := root.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) >= 2 && words[0] == name {
			n, _ := strconv.ParseInt(words[1], 10, 64)
			return n
		}
	}
	return 0
}
