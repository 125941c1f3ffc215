package document_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"github.com/meshfeed/meshfeed/core/plan/diagram/document"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/golden"
)

// TestGolden draws every document of testdata as text and as SVG, and compares both
// with files of the same name. The flag -rewrite writes these files.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal("there is nothing to draw", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := document.Draw(text)
			if err != nil {
				t.Fatal(err)
			}
			stem := strings.TrimSuffix(path, ".json")
			golden.Compare(t, stem+".txt", d.Text(0))
			golden.Compare(t, stem+".svg", d.SVG(0))
			checkText(t, d.Text(0), 80)
			for _, width := range []int{0, 390} {
				checkSVG(t, d.SVG(width), width)
			}
		})
	}
}

// checkText checks the width of lines, and that no line ends with spaces.
func checkText(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > width {
			t.Errorf("the line is wider than %d columns: %q", width, line)
		}
		if line != strings.TrimRight(line, " ") {
			t.Errorf("the line ends with spaces: %q", line)
		}
	}
}

// checkSVG checks that an SVG is XML of at most this width, or of 760 pixels if most is 0. It
// must have a title and a description, and every text must be within its width.
func checkSVG(t *testing.T, svg string, most int) {
	t.Helper()
	if most == 0 {
		most = 760
	}
	width, texts := 0, map[string]string{}
	var element string
	var x, halves int // the position of a text, and how many halves of it are right of x
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			element = e.Name.Local
			a := attributes(e)
			if element == "svg" {
				width, _ = strconv.Atoi(a["width"])
			}
			x, _ = strconv.Atoi(a["x"])
			halves = map[string]int{"": 2, "middle": 1}[a["text-anchor"]]
		case xml.CharData:
			texts[element] += string(e)
			size := 7 * utf8.RuneCountInString(string(e)) // 7 pixels per character
			if right := x + size*halves/2; element == "text" && (right > width || right-size < 0) {
				t.Errorf("the text %q goes from %d to %d, outside of %d", e, right-size, right, width)
			}
			element = ""
		}
	}
	if width == 0 || width > most {
		t.Errorf("the width is %d, but may be %d", width, most)
	}
	if texts["title"] == "" || texts["desc"] == "" {
		t.Errorf("there is no title or no description in\n%s", svg)
	}
}

// attributes returns the attributes of an element by name.
func attributes(e xml.StartElement) map[string]string {
	byName := map[string]string{}
	for _, a := range e.Attr {
		byName[a.Name.Local] = a.Value
	}
	return byName
}

// TestSchema compares the schema with its file. The flag -rewrite writes the file.
func TestSchema(t *testing.T) {
	golden.CompareJSON(t, "diagram.schema.json", []byte(document.Schema()))
}

// TestErrors draws the documents of testdata/errors, and compares the errors.
func TestErrors(t *testing.T) {
	datadriven.RunTest(t, "testdata/errors", func(t *testing.T, d *datadriven.TestData) string {
		_, err := document.Draw([]byte(d.Input))
		var e *status.Error
		if !errors.As(err, &e) {
			return "no error"
		}
		if e.Code != status.InvalidArgument {
			t.Errorf("%s: the code is %s", d.Pos, e.Code)
		}
		path, _ := e.Attr("path").(string)
		return e.Error() + "\npath: " + strconv.Quote(path)
	})
}

// A document that is too large is refused before it is read.
func TestLargeDocument(t *testing.T) {
	_, err := document.Draw(make([]byte, document.MaxBytes+1))
	const want = "diagram: the document has 8388609 bytes, but may have 8388608"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// FuzzDraw checks that no document crashes, and that what is drawn is XML.
func FuzzDraw(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.json")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := document.Draw(text)
		if err != nil {
			return
		}
		d.Text(0)
		for e := xml.NewDecoder(strings.NewReader(d.SVG(0))); ; {
			if _, err := e.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}
