package parts

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/formattest"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/arrowio/internal/units/unitstest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// useProcessors sets the number of processors to n during a test.
func useProcessors(t *testing.T, n int) {
	was := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
}

// openParts opens files, each with a unit of one row, and keeps their parts in a folder. The
// number in a row is the number of its file.
func openParts(t *testing.T, files int, f formattest.Toy) *Cache {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, files)
	for i := range paths {
		paths[i] = filepath.Join(dir, string(rune('a'+i))+".toy")
		if err := os.WriteFile(paths[i], append([]byte(formattest.Magic), 1, byte(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var c *Cache
	d := unitstest.Open(t, f, local.Opener{}, paths, func() { c.Close() })
	units := decoded.New(d.Files, d.Table.Calls, d.Life)
	d.Table.Units = units
	c = New(d.Files, units, d.Table, d.Life, Options{Path: filepath.Join(dir, "cache"), Opener: local.Opener{}})
	return c
}

// TestNotes: a note is found again, also by another cache with the same folder, unless it is damaged or
// nothing may be written.
func TestNotes(t *testing.T) {
	c, key := openParts(t, 1, formattest.Toy{}), "a0"
	if got := c.Note(key); got != nil {
		t.Errorf("found %q before it was kept", got)
	}
	c.KeepNote(key, []byte("counts"))
	c.KeepNote(key, []byte("counts"))
	other := openParts(t, 1, formattest.Toy{})
	other.Path = c.Path
	if got := string(other.Note(key)); got != "counts" {
		t.Errorf("found %q", got)
	}
	folder, err := diskcache.Look(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := folder.List()
	if err != nil || len(list) != 1 || list[0].Scratch || list[0].InUse {
		t.Errorf("the folder has %+v, %v", list, err)
	}
	if err := os.Truncate(filepath.Join(c.Path, key+".units"), 60); err != nil {
		t.Fatal(err)
	}
	if got := c.Note(key); got != nil || folder.Has(key) {
		t.Errorf("a damaged note is %q", got)
	}
	other.Path = "memory"
	other.KeepNote(key, nil)
	if other.Note(key) != nil || folder.Has(key) {
		t.Error("a note was kept in memory")
	}
}

// numbers returns a gatherer of the numbers.
func numbers(t *testing.T, c *Cache) source.Gatherer {
	t.Helper()
	g, err := c.Gatherer([]source.Part{c.inMemory.Schema.Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gatherTwo gathers the rows of both files.
func gatherTwo(t *testing.T, c *Cache) {
	t.Helper()
	g := numbers(t, c)
	defer g.Close()
	dst := make([]byte, 2*4)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{0, 1}, []source.Job{{Rows: [2]int{0, 2}, Dst: dst}}); err != nil || dst[4] != 1 {
		t.Fatalf("%v, %v", dst, err)
	}
}

// TestDecodesWhileTheDiskWrites: no part reaches the disk before the decoding of both has
// begun, although one worker makes them.
func TestDecodesWhileTheDiskWrites(t *testing.T) {
	useProcessors(t, 1)
	var begun atomic.Int32
	both := make(chan struct{})
	was := commitScratch
	defer func() { commitScratch = was }()
	commitScratch = func(s *diskcache.Scratch) (diskcache.Entry, error) {
		<-both
		return was(s)
	}
	gatherTwo(t, openParts(t, 2, formattest.Toy{Memory: 1, Decode: func(int, int64) error {
		if begun.Add(1) == 2 {
			close(both)
		}
		return nil
	}}))
}

// TestPartsWaitForTheDisk: if many parts wait for the disk, a worker waits with them.
func TestPartsWaitForTheDisk(t *testing.T) {
	useProcessors(t, 1)
	if !commits.TryAcquire(maxCommits) {
		t.Fatal("other parts wait for the disk")
	}
	defer commits.Release(maxCommits)
	var begun atomic.Int32
	was := commitScratch
	defer func() { commitScratch = was }()
	commitScratch = func(s *diskcache.Scratch) (diskcache.Entry, error) {
		if n := begun.Load(); n != 1 && n != 2 {
			t.Errorf("%d parts", n)
		}
		return was(s)
	}
	gatherTwo(t, openParts(t, 2, formattest.Toy{Memory: 1, Decode: func(int, int64) error { begun.Add(1); return nil }}))
}

// TestPartsInOrderOfNeed: a part that a gather waits for is made before parts that were only
// announced. The parts of one gather are made in the order of the files.
func TestPartsInOrderOfNeed(t *testing.T) {
	useProcessors(t, 1)
	begun, release, order := make(chan struct{}), make(chan struct{}), []byte(nil)
	c := openParts(t, 5, formattest.Toy{
		Memory: 1,
		Decode: func(int, int64) error {
			if order == nil {
				close(begun)
				<-release
			}
			return nil
		},
		Values: func(b []byte) []byte { order = append(order, b[0]); return b },
	})
	g := numbers(t, c)
	defer g.Close()
	g.Ahead(source.Draw{}, []int64{0, 1, 2, 3})
	<-begun
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dst := make([]byte, 5*4)
	if err := g.Gather(ended, source.Draw{}, []int64{4, 2}, []source.Job{{Rows: [2]int{0, 2}, Dst: dst[:2*4]}}); status.CodeOf(err) != status.Cancelled {
		t.Fatalf("a gather whose context has ended: %v", err)
	}
	close(release)
	for _, records := range [][]int64{{4, 2}, {0, 1, 2, 3, 4}} {
		n := len(records)
		if err := g.Gather(t.Context(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, n}, Dst: dst[:n*4]}}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(order, []byte{0, 2, 4, 1, 3}) {
		t.Errorf("parts were made in the order %v", order)
	}
}

// TestPartsLeaveTheirMemory: the values of parts that were written leave their memory to others.
func TestPartsLeaveTheirMemory(t *testing.T) {
	const n = 100_000
	var used [][]byte
	useProcessors(t, 1)
	f := formattest.Toy{Memory: 1, Decode: func(int, int64) error { return nil }, Values: func(b []byte) []byte {
		b = append(b, make([]byte, n-len(b))...)[:n:n]
		used = append(used, b)
		return b
	}}
	for range 5 {
		gatherTwo(t, openParts(t, 2, f))
	}
	for range used {
		b := spare.Take(n)
		if slices.ContainsFunc(used, func(u []byte) bool { return &u[0] == &b[0] }) {
			return
		}
	}
	t.Error("no memory of parts is used again")
}

// TestExceeds: fields exceed fewer bytes than they have decoded, and not as many.
func TestExceeds(t *testing.T) {
	c := openParts(t, 3, formattest.Toy{})
	if fields := []int{0}; c.exceeds(fields, 12) || !c.exceeds(fields, 11) {
		t.Error("three numbers are not 12 bytes")
	}
}
