package picture_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/tests/documents"
	"github.com/meshfeed/meshfeed/tests/golden"
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
			golden.Compare(t, strings.TrimSuffix(path, ".json")+".svg", got)
		})
	}
}
