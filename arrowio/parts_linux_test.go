package arrowio

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// openParts opens files of the format hooked, each with a unit of one row, whose parts are kept
// in a folder. The number in a row is that of its file.
func openParts(t *testing.T, files int, h hooked) *Dataset {
	t.Helper()
	was := formats
	formats = []format.Format{h}
	defer func() { formats = was }()
	dir := t.TempDir()
	paths := make([]string, files)
	for i := range paths {
		paths[i] = filepath.Join(dir, string(rune('a'+i))+".toy")
		if err := os.WriteFile(paths[i], append([]byte(toyMagic), 1, byte(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenFiles(t.Context(), paths, Options{Cache: filepath.Join(dir, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// gatherTwo gathers the rows of both files.
func gatherTwo(t *testing.T, d *Dataset) {
	t.Helper()
	g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
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
	gatherTwo(t, openParts(t, 2, hooked{bytes: 1, hook: func(int, int64) error {
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
	gatherTwo(t, openParts(t, 2, hooked{bytes: 1, hook: func(int, int64) error { begun.Add(1); return nil }}))
}

// TestPartsInOrderOfNeed: a part that a gather waits for is made before those that were only
// announced.
func TestPartsInOrderOfNeed(t *testing.T) {
	useProcessors(t, 1)
	begun, release, order := make(chan struct{}), make(chan struct{}), []byte(nil)
	d := openParts(t, 5, hooked{
		bytes: 1,
		hook: func(int, int64) error {
			if order == nil {
				close(begun)
				<-release
			}
			return nil
		},
		values: func(b []byte) []byte { order = append(order, b[0]); return b },
	})
	g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
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
	if !slices.Equal(order, []byte{0, 4, 2, 1, 3}) {
		t.Errorf("parts were made in the order %v", order)
	}
}

// TestPartsLeaveTheirMemory: the values of parts that were written leave their memory to others.
func TestPartsLeaveTheirMemory(t *testing.T) {
	const n = 100_000
	var used [][]byte
	useProcessors(t, 1)
	h := hooked{bytes: 1, hook: func(int, int64) error { return nil }, values: func(b []byte) []byte {
		b = append(b, make([]byte, n-len(b))...)[:n:n]
		used = append(used, b)
		return b
	}}
	for range 5 {
		gatherTwo(t, openParts(t, 2, h))
	}
	for range used {
		b := spare.Take(n)
		if slices.ContainsFunc(used, func(u []byte) bool { return &u[0] == &b[0] }) {
			return
		}
	}
	t.Error("no memory of parts is used again")
}
