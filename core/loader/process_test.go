package loader_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
)

const numberFromZero = "; number processes from 0; if the run has processes outside the mesh, say in Options.Processes how many it has"

// A process number must be one of the layout or of the run. The process may have no
// devices.
func TestProcessMustExist(t *testing.T) {
	four, alone, scattered := strip(4, 8, ""), strip(1, 8, ""), strip(2, 8, "")
	scattered.Mesh.Processes = 0
	scattered.Mesh.Devices = []mesh.Device{{Process: 1, ID: 0}, {Process: 3, ID: 1}}
	for _, c := range []struct {
		name      string
		layout    *layout.Document
		process   int
		processes int
		owned     int    // blocks of the process
		want      string // empty: it exists
	}{
		{"last", four, 3, 0, 2, ""},
		{"rank that counts from 1", four, 4, 0, 0, "Options.Process is 4, but the layout has processes 0 to 3"},
		{"far", four, 1000000, 0, 0, "Options.Process is 1000000, but the layout has processes 0 to 3"},
		{"one process", alone, 1, 0, 0, "Options.Process is 1, but the layout has process 0 alone"},
		{"between owners", scattered, 2, 0, 0, ""},
		{"after the last owner", scattered, 4, 0, 0, "Options.Process is 4, but the layout has processes 0 to 3"},
		{"of the run", scattered, 4, 5, 0, ""},
		{"after the run", scattered, 5, 5, 0, "Options.Process is 5, but the run has processes 0 to 4"},
		{"run smaller than the layout", scattered, 3, 1, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := loader.New(digits(16), loader.Options{Layout: newLayout(t, c.layout), Process: c.process, Processes: c.processes})
			if c.want != "" {
				wantError(t, err, status.OutOfRange, "loader: "+c.want+numberFromZero)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer closeLoader(t, l)
			if n := len(loopSteps(t, l)); n != 2 || len(l.Blocks()) != c.owned {
				t.Errorf("%d batches of %d blocks, want 2 of %d", n, len(l.Blocks()), c.owned)
			}
		})
	}
}

// A process of the run may continue without devices, also if a later mesh is smaller.
// A process that the run never had may not.
func TestRemeshOutsideTheMesh(t *testing.T) {
	first := newLoader(t, digits(64), loader.Options{Layout: newLayout(t, strip(4, 8, "")), Process: 3, Epochs: -1})
	next(t, first)
	two := remesh(t, first, newLayout(t, strip(2, 8, "")), 3)
	one := remesh(t, two, newLayout(t, strip(1, 8, "")), 2)
	for _, l := range []*loader.Loader{two, one} {
		if p := next(t, l); p.Position != 8 || len(l.Blocks()) != 0 {
			t.Errorf("process %d got position %d with %d blocks, want 8 with none", l.Process(), p.Position, len(l.Blocks()))
		}
	}
	_, err := one.Remesh(newLayout(t, strip(2, 8, "")), 4, nil)
	wantError(t, err, status.OutOfRange, "loader: Options.Process is 4, but the run has processes 0 to 3"+numberFromZero)
	eight := remesh(t, one, newLayout(t, strip(8, 8, "")), 7) // a larger mesh
	if len(eight.Blocks()) != 2 {
		t.Errorf("%d blocks of process 7, want 2", len(eight.Blocks()))
	}
}
