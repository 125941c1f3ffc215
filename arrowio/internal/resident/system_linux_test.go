package resident

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// inCore reports which pages of a mapping are in memory.
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
	file, err := os.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	mapping, err := unix.Mmap(int(file.Fd()), 0, int(f.Size()), unix.PROT_READ, unix.MAP_SHARED)
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
		t.Error("pages were read without a request")
	}
}

// TestReadsNothingAround: if a step needs rows before their file is in memory, only
// their pages are read. The kernel would read more around a fault.
func TestReadsNothingAround(t *testing.T) {
	files, _ := write(t, 1<<20)
	f, page := files[0], os.Getpagesize()
	evict(t, f)
	if err := f.mapIn(true, nil); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&region{file: f, from: 500_000, to: 510_000}).load(t.Context(), nil); err != nil {
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
		newSet(t, files, Options{IO: "map", Memory: plenty})
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

// TestFault: if a file is truncated after its pages were acquired, a read of them
// faults, and the fault is an error.
func TestFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, _ := write(t, 100_000)
		newSet(t, files, Options{IO: "map", Memory: plenty})
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
	for _, o := range []Options{{IO: "map", Memory: plenty}, {IO: "read"}} {
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
		_ = s.calls.Close(0)
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
