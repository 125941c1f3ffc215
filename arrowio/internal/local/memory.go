package local

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// FreeMemory returns how many bytes of files can be held in memory; 0 if the system
// does not report it.
func FreeMemory() int64 { return freeMemory(os.DirFS("/")) }

// freeMemory reads the files of Linux's proc and sys below root. It returns
// MemAvailable, or less if a control group of this process has a limit. Cached pages
// of files count as free, because the kernel can drop them.
func freeMemory(root fs.FS) int64 {
	free := field(root, "proc/meminfo", "MemAvailable:") * 1024
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return free
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path; version 2 is "0::path".
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			free = min(free, groupsFree(root, "sys/fs/cgroup", parts[2], "memory.max", "memory.current", "inactive_file", "active_file"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			free = min(free, groupsFree(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"))
		}
	}
	return max(free, 0)
}

// groupsFree returns the least memory that is free within the limit of a control
// group or of one of its parents. It skips groups without readable files: in a
// container, the path of the process's own group may not exist.
func groupsFree(root fs.FS, base, group, limit, usage string, cached ...string) int64 {
	free := int64(math.MaxInt64)
	for dir := path.Join(base, path.Clean("/"+group)); strings.HasPrefix(dir, base); dir = path.Dir(dir) {
		most, ok := number(root, path.Join(dir, limit))
		used, ok2 := number(root, path.Join(dir, usage))
		if !ok || !ok2 {
			continue
		}
		for _, name := range cached {
			used -= field(root, path.Join(dir, "memory.stat"), name)
		}
		free = min(free, most-max(used, 0))
	}
	return free
}

// number reads a file that holds one number. It is false if the file cannot be read,
// and for "max", which means that there is no limit.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field reads the number after a name at the beginning of a line; 0 if there is
// no such line.
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
