package local

import (
	"runtime"
	"testing"
	"testing/fstest"
)

func TestFreeMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemTotal:  2000 kB\nMemAvailable:   1000 kB\n")
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		want  int64
	}{
		{"no groups", fstest.MapFS{"proc/meminfo": meminfo}, 1024000},
		{"version 2", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/job/a\n"),
			"sys/fs/cgroup/job/a/memory.max": file("max\n"), "sys/fs/cgroup/job/a/memory.current": file("9\n"),
			"sys/fs/cgroup/job/memory.max": file("500000\n"), "sys/fs/cgroup/job/memory.current": file("300000\n"),
			"sys/fs/cgroup/job/memory.stat": file("anon 1\nactive_file 50000\ninactive_file 60000\n"),
		}, 310000},
		{"version 2 in a container", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/../x\n"),
			"sys/fs/cgroup/memory.max": file("500000\n"), "sys/fs/cgroup/memory.current": file("600000\n"),
		}, 0},
		{"version 1", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("5:cpu,memory:/docker/1\n4:pids:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("700000\n"), "sys/fs/cgroup/memory/memory.usage_in_bytes": file("100000\n"),
			"sys/fs/cgroup/memory/memory.stat": file("cache 1\ntotal_inactive_file 10000\n"),
		}, 610000},
		{"nothing known", fstest.MapFS{}, 0},
	} {
		if got := freeMemory(c.files); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
	if runtime.GOOS == "linux" && FreeMemory() <= 0 {
		t.Error("this system has no free memory")
	}
}
