package arch

import (
	"strings"
	"testing"
)

// rooms lists the packages of arrowio by what they do, from the bottom up. A package imports
// packages of its own room and of rooms below it only.
var rooms = []struct {
	does     string
	packages []string
}{
	{"read bytes of a storage", []string{"blob", "blob/blobtest", "internal/local", "internal/remote", "internal/hub", "internal/credentials", "internal/bucket", "internal/resident"}},
	{"find the files of a dataset", []string{"internal/manifest", "internal/files"}},
	{"describe record batches and the buffers of columns", []string{"internal/buffers", "internal/index"}},
	{"read and write a format", []string{"internal/spare", "internal/codec", "internal/chunk", "internal/audit", "internal/ipcfile", "internal/npy", "internal/format", "internal/format/..."}},
	{"give all files one schema", []string{"internal/union"}},
	{"number the units of all files", []string{"internal/units"}},
	{"decode units", []string{"internal/decoded"}},
	{"read and write parts of decoded fields", []string{"internal/diskcache", "internal/part"}},
	{"copy rows by their numbers", []string{"internal/table", "internal/units/unitstest"}},
	{"read the lengths of lists", []string{"internal/lists"}},
	{"keep decoded fields on disk", []string{"internal/parts"}},
	{"hash and verify a dataset", []string{"internal/fingerprint", "internal/verify"}},
	{"open and assemble a dataset", []string{""}},
	{"use datasets and tables", []string{"convert", "tensors", "cstream", "internal/goarrow", "records", "records18"}},
}

// TestNoImportRunsUpward checks that the rooms of arrowio depend on rooms below them only. The
// table of allowed imports has no order, so it alone would let a low package grow upward.
func TestNoImportRunsUpward(t *testing.T) {
	floor := map[string]int{}
	for i, room := range rooms {
		for _, name := range room.packages {
			floor[strings.TrimSuffix("arrowio/"+name, "/")] = i
		}
	}
	for _, p := range list(t, builds[0]) {
		if p.path() != "arrowio" && !strings.HasPrefix(p.path(), "arrowio/") {
			continue
		}
		room, known := listed(floor, p.path())
		own := floor[room]
		if !known {
			t.Errorf("package %s is in no room: add it to the table of this test", p.path())
			continue
		}
		for _, imp := range p.Imports {
			if room, ok := listed(floor, strings.TrimPrefix(imp, module)); ok && floor[room] > own {
				above := floor[room]
				t.Errorf("%s must not import %s: packages that %s must not need packages that %s", p.path(), strings.TrimPrefix(imp, module), rooms[own].does, rooms[above].does)
			}
		}
	}
}
