package picture_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// TestSVG compares the drawing of every document of testdata/svg with the file
// beside it. The flag -rewrite writes the files.
func TestSVG(t *testing.T) {
	paths, err := filepath.Glob("testdata/svg/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal("there is nothing to draw", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := picture.SVG(documents.Layout(t, string(text)), picture.Options{})
			golden := strings.TrimSuffix(path, ".json") + ".svg"
			if flag.Lookup("rewrite").Value.String() == "true" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the drawing differs from %s: draw it with -rewrite, and look at it", golden)
			}
		})
	}
}
