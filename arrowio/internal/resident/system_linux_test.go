package resident

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// inCore says which pages of a mapping are in memory.
func inCore(t *testing.T, mapping []byte) []bool {
	t.Helper()
	page := os.Getpagesize()
	vec := make([]byte, (len(mapping)+page-1)/page)
	if err := mincore(mapping, vec); err != nil {
		t.Fatal(err)
	}
	pages := make([]bool, len(vec))
	for i, v := range vec {
		pages[i] = v&1 != 0
	}
	return pages
}

// evict drops a file's pages from the cache, or skips the test.
func evict(t *testing.T, f *File) {
	t.Helper()
	if err := f.file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	mapping, err := unix.Mmap(int(f.file.Fd()), 0, int(f.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapping)
	for _, in := range inCore(t, mapping) {
		if in {
			t.Skip("this file system keeps its pages in memory")
		}
	}
}

func TestPopulates(t *testing.T) {
	files, _ := write(t, 1<<20)
	evict(t, files[0])
	s := newSet(t, files, Options{IO: "map", Memory: 1}) // in parts
	lease, err := s.Acquire(context.Background(), []Span{{0, 500_000, 10_000}}, make([]uintptr, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	pages, page := inCore(t, files[0].mapping), os.Getpagesize()
	for i := 500_000 / page; i <= 509_999/page; i++ {
		if !pages[i] {
			t.Errorf("page %d was acquired and is not resident", i)
		}
	}
	if pages[0] || pages[len(pages)-1] {
		t.Error("pages that nobody asked for were read")
	}
}

// TestReadsNothingAround: rows that a step needs before their file is in memory
// come alone, whatever the kernel would read around a fault.
func TestReadsNothingAround(t *testing.T) {
	files, _ := write(t, 1<<20)
	f, page := files[0], os.Getpagesize()
	evict(t, f)
	if err := f.mapIn(false); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&region{file: f, from: 500_000, to: 510_000}).load(nil); err != nil {
		t.Fatal(err)
	}
	first, last := 500_000/page, 509_999/page
	for i, in := range inCore(t, f.mapping) {
		switch {
		case !in && first <= i && i <= last:
			t.Errorf("page %d was asked for and is not resident", i)
		case in && (i < first-8 || last+8 < i): // large folios come whole
			t.Errorf("page %d was read, far from pages %d to %d", i, first, last)
		}
	}
}

func TestPopulatesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, _ := write(t, 1<<20, 50_000)
		evict(t, files[0])
		newSet(t, files, Options{IO: "map"})
		synctest.Wait() // for the goroutine that populates
		for _, f := range files {
			for i, in := range inCore(t, f.mapping) {
				if !in {
					t.Errorf("page %d is not resident", i)
				}
			}
		}
	})
}

// TestFault: a file that shrinks after its pages were acquired faults, and the
// fault is an error.
func TestFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, _ := write(t, 100_000)
		newSet(t, files, Options{IO: "map"})
		synctest.Wait() // for the goroutine that populates
		base, ok := files[0].Base()
		if !ok {
			t.Fatal("not resident")
		}
		if err := os.Truncate(files[0].Name(), 0); err != nil {
			t.Fatal(err)
		}
		sum := 0
		err := guard.Fault(func() error {
			for _, b := range at(base, 100_000) {
				sum += int(b)
			}
			return nil
		}, func(any) error { return files[0].Check() })
		if status.CodeOf(err) != status.DataLoss {
			t.Errorf("got %v", err)
		}
	})
}

func TestNothingLeft(t *testing.T) {
	for _, o := range []Options{{IO: "map"}, {IO: "read"}} {
		files, _ := write(t, 1<<20, 10)
		name := files[0].Name()
		s := newSet(t, files, o)
		lease, err := s.Acquire(context.Background(), []Span{{0, 5, 10}}, make([]uintptr, 1))
		if err != nil {
			t.Fatal(err)
		}
		if !open(t, name) {
			t.Error("the test does not see what is open")
		}
		lease.Release()
		s.Close()
		_ = s.gate.Close(0)
		if open(t, name) {
			t.Errorf("%+v: a mapping or a descriptor is left", o)
		}
	}
}

// open reports whether this process holds a file open or mapped.
func open(t *testing.T, name string) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(maps), name) {
		return true
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if target, _ := os.Readlink("/proc/self/fd/" + fd.Name()); target == name {
			return true
		}
	}
	return false
}

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
	if freeMemory(root()) <= 0 {
		t.Error("this system has no free memory")
	}
}
