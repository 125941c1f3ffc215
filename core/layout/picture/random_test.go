package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/tests/documents"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestRandomPictures checks that pictures of random layouts have every device,
// that no line of a text is too long, and that every drawing is XML.
func TestRandomPictures(t *testing.T) {
	r := random.New(t)
	for i := range 150 {
		d := documents.Random(r)
		l := documents.New(t, d)
		for line := range strings.Lines(Text(l, Options{})) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Fatalf("layout %d, %s: a line has %d characters: %s", i, document.Canonical(d), n, line)
			}
		}
		if err := everyDevice(newView(l)); err != nil {
			t.Fatalf("layout %d, %s: %v\n%s", i, document.Canonical(d), err, Text(l, Options{}))
		}
		Text(l, Options{Width: 20 + r.IntN(80)})
		wellFormed(t, SVG(l, Options{}))
	}
}

// everyDevice checks that each device of a small mesh is in exactly one cell of
// the grid of every array, with the devices that hold the same part.
func everyDevice(v *view) error {
	for i, a := range v.arrays {
		seen := make([]bool, v.mesh.Size())
		g := v.gridOf(v.holders(i), nil, fewDevices, false)
		for r, line := range g.cells {
			for c, cell := range line {
				for _, part := range cell.parts {
					for _, position := range part {
						if seen[position] || !a.Sharding.IndexAt(a.Shape, int(position)).Equal(a.Sharding.IndexAt(a.Shape, int(part[0]))) {
							return fmt.Errorf("array %s, cell %d, %d: position %d is in the wrong cell", a.Name, r, c, position)
						}
						seen[position] = true
					}
				}
			}
		}
		if slices.Contains(seen, false) {
			return fmt.Errorf("array %s: of the devices %v some are not drawn", a.Name, seen)
		}
	}
	return nil
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
