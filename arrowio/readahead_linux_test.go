package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// largerThanMemory writes a stream with one record batch of int64, twice as large as
// the memory of this machine. Its values are a hole in the file, so it takes no
// space on disk. It writes a stream of few rows first, and then replaces the sizes in
// the metadata. It returns the position of the values.
func largerThanMemory(t *testing.T) (path string, values, rows int64) {
	t.Helper()
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		t.Fatal(err)
	}
	const few = 4099 // a number that the metadata contain only as the size to replace
	rows = int64(machine.Totalram) * int64(machine.Unit) / 4
	number := func(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

	path = temp(t, "x.arrows")
	var folder unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &folder); err != nil {
		t.Fatal(err)
	} else if folder.Type == unix.TMPFS_MAGIC {
		t.Skip("this file system keeps its pages in memory")
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	save(t, path, true, schema, []int{few}, 1)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := arrowmeta.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	values = f.Batches[0].Body()
	for _, size := range []int64{1, 8} { // the batch and the column count rows; the buffer and the body count bytes
		if n := bytes.Count(data[:values], number(size*few)); n != 2 {
			t.Fatalf("%d occurs %d times in the metadata", size*few, n)
		}
		data = append(bytes.ReplaceAll(data[:values:values], number(size*few), number(size*rows)), data[values:]...)
	}
	if err := os.WriteFile(path, data[:values], 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, values+8*rows); err != nil {
		t.Fatal(err)
	}
	return path, values, rows
}

// inMemory reports whether the page of a file that has the byte at offset is in the
// page cache.
func inMemory(t *testing.T, path string, offset int64) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := int64(os.Getpagesize())
	mapping, err := unix.Mmap(int(f.Fd()), offset/page*page, int(page), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapping)
	var resident byte
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapping[0])), uintptr(page), uintptr(unsafe.Pointer(&resident))); errno != 0 {
		t.Fatal(errno)
	}
	return resident&1 != 0
}

// TestAheadReadsRows maps a file that does not fit into memory. A row that Ahead
// announces becomes resident without a gather. A gather makes its own rows resident.
// Other parts of the file are not read. Reading a hole needs no disk, so a row is
// resident as soon as the request to the kernel returns.
func TestAheadReadsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, values, rows := largerThanMemory(t)
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: "map"})
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		g, err := ds.Gatherer([]source.Part{whole(0, ds.Schema().Fields[0])})
		if err != nil {
			t.Fatal(err)
		}
		announced, gathered, untouched := rows/2, rows/3, rows/4
		resident := func(when string, want map[int64]bool) {
			t.Helper()
			for record, want := range want {
				if got := inMemory(t, path, values+8*record); got != want {
					t.Errorf("%s: record %d of %d is resident: %v", when, record, rows, got)
				}
			}
		}
		resident("after opening", map[int64]bool{announced: false, gathered: false, untouched: false})
		g.Ahead(source.Draw{}, []int64{announced})
		synctest.Wait() // for the goroutine that asks the kernel
		resident("after Ahead", map[int64]bool{announced: true, gathered: false, untouched: false})
		if err := g.Gather(context.Background(), source.Draw{}, []int64{gathered}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, 8)}}); err != nil {
			t.Fatal(err)
		}
		resident("after the gather", map[int64]bool{announced: true, gathered: true, untouched: false})
	})
}
