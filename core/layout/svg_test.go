package layout

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSVG draws every document of testdata/svg and compares with the drawing
// beside it, which a browser shows; -rewrite draws anew.
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
			got := mustNew(t, string(text)).SVG(PictureOptions{})
			wellFormed(t, got)
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

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}
