package layout_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// huge makes the largest document: 1,024 arrays on 2^20 devices, all
// partitioned alike or each in its own way.
func huge(processes int, alike bool) *layout.Document {
	d := &layout.Document{Mesh: layout.MeshSpec{Processes: processes}, Batch: &layout.BatchSpec{Size: []int{1 << 20}}}
	for a := range 20 {
		d.Mesh.Axes = append(d.Mesh.Axes, mesh.Axis{Name: string(rune('a' + a)), Size: 2})
	}
	for i := range layout.MaxArrays {
		a := layout.ArraySpec{Name: fmt.Sprint(i), Type: dtype.Int8, RowShape: []int{1024}, Spec: sharding.PartitionSpec{{"a", "b"}}}
		for bit := range 10 {
			if !alike && i>>bit&1 == 1 {
				a.Spec[0] = append(a.Spec[0], string(rune('c'+bit)))
			}
		}
		if alike {
			for x := 2; x < 20; x++ {
				a.Spec[0] = append(a.Spec[0], string(rune('a'+x)))
			}
		}
		d.Arrays = append(d.Arrays, a)
	}
	return d
}

// TestHuge checks that the layouts of the largest documents take bounded memory
// and time.
func TestHuge(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") == "" {
		t.Skip("takes some seconds; MESHFEED_DEEP=1 runs it")
	}
	for _, c := range []struct {
		processes int
		alike     bool
		code      problem.Code // code of the first problem, if it is an error
	}{{1, true, layout.TooManyBlocks}, {layout.MaxProcesses, true, ""}, {1, false, layout.TooLarge}} {
		l, err := layout.Draft(huge(c.processes, c.alike))
		if err != nil {
			t.Fatal(err)
		}
		if (c.code == "") != (l.Err() == nil) || c.code != "" && l.Problems()[0].Code != c.code {
			t.Errorf("%d processes, alike %t: %v", c.processes, c.alike, l.Err())
		}
		if n := len(l.Process(0).Blocks); n > layout.MaxBlocks {
			t.Errorf("a process has %d blocks", n)
		}
		if n := len(document.Report(l, document.ReportOptions{Tables: true})); n > 4<<30 {
			t.Errorf("the report has %d bytes", n)
		}
		if n := len(picture.Text(l, picture.Options{})) + len(picture.SVG(l, picture.Options{})); n > 1<<20 {
			t.Errorf("the pictures have %d bytes", n)
		}
	}
}
