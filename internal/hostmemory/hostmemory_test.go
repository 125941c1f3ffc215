package hostmemory

import (
	"runtime"
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemTotal:  2000 kB\nMemAvailable:   1000 kB\n")
	for _, c := range []struct {
		name      string
		files     fstest.MapFS
		want      Memory
		available int64
	}{
		{"no groups", fstest.MapFS{"proc/meminfo": meminfo}, Memory{2048000, 1024000, 0, 0}, 1024000},
		{"version 2", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/job/a\n"),
			"sys/fs/cgroup/job/a/memory.max": file("max\n"), "sys/fs/cgroup/job/a/memory.current": file("9\n"),
			"sys/fs/cgroup/job/memory.max": file("500000\n"), "sys/fs/cgroup/job/memory.current": file("300000\n"),
			"sys/fs/cgroup/job/memory.stat": file("anon 1\nactive_file 50000\ninactive_file 60000\n"),
		}, Memory{2048000, 1024000, 500000, 310000}, 310000},
		{"version 2 in a container", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/../x\n"),
			"sys/fs/cgroup/memory.max": file("500000\n"), "sys/fs/cgroup/memory.current": file("600000\n"),
		}, Memory{2048000, 1024000, 500000, 0}, 0},
		{"version 1", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("5:cpu,memory:/docker/1\n4:pids:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("700000\n"), "sys/fs/cgroup/memory/memory.usage_in_bytes": file("100000\n"),
			"sys/fs/cgroup/memory/memory.stat":                    file("cache 1\ntotal_inactive_file 10000\n"),
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": file("9223372036854771712\n"), "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": file("1\n"),
		}, Memory{2048000, 1024000, 700000, 610000}, 610000},
		{"nothing known", fstest.MapFS{}, Memory{}, 0},
	} {
		got := Read(c.files)
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if available := got.available(); available != c.available {
			t.Errorf("%s: %d bytes are available, want %d", c.name, available, c.available)
		}
	}
	if runtime.GOOS == "linux" && Free() <= 0 {
		t.Error("this system has no free memory")
	}
}
