// Package layouts has the golden tests of the layouts in docs/layouts.
package layouts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/tests/golden"
)

const (
	folder = "../../docs/layouts"
	orders = "../distributed/testdata/tpu_orders.json"
)

func paths(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(found) < 10 {
		t.Fatalf("%d layouts, %v: expected at least ten in %s", len(found), err, folder)
	}
	return found
}

func planned(t *testing.T, path string) *layout.Layout {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := layout.Draft(d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLayouts compares the report of every layout, and its picture in 80
// columns, with the files in testdata.
func TestLayouts(t *testing.T) {
	for _, path := range paths(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			l := planned(t, path)
			golden.Compare(t, "testdata/"+name+".report.json", string(document.Report(l, document.ReportOptions{}))+"\n")
			golden.Compare(t, "testdata/"+name+".txt", picture.Text(l, picture.Options{Width: 80}))
		})
	}
}

// TestEveryGoldenFileHasALayout finds golden files of renamed layouts.
func TestEveryGoldenFileHasALayout(t *testing.T) {
	var expected []string
	for _, path := range paths(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		expected = append(expected, name+".report.json", name+".txt")
	}
	golden.Only(t, "testdata", expected)
}

// TestScatteredHosts checks that JAX makes a mesh like the example's mesh.
func TestScatteredHosts(t *testing.T) {
	raw, err := os.ReadFile(orders)
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Orders []struct {
			Slice   string
			Shape   []int
			Devices [][2]int
		}
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(folder + "/06-tpu-slice-with-scattered-hosts.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Mesh struct{ Devices [][2]int } }
	if err := json.Unmarshal(example, &document); err != nil {
		t.Fatal(err)
	}
	for _, o := range recorded.Orders {
		if o.Slice == "TPU v5 lite 4x4x1" && slices.Equal(o.Shape, []int{16}) {
			if !slices.Equal(o.Devices, document.Mesh.Devices) {
				t.Errorf("the example has devices %v, JAX orders them %v", document.Mesh.Devices, o.Devices)
			}
			return
		}
	}
	t.Fatalf("%s has no slice of this shape", orders)
}
