package document_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/documents"
	"github.com/meshfeed/meshfeed/tests/golden"
)

const path = "testdata/documents.json"

// row is a row of the table that testdata/README.md describes.
type row struct {
	Name      string `json:"name"`
	Text      []part `json:"text"`
	Canonical string `json:"canonical,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Path      string `json:"path"`
	Error     string `json:"error,omitempty"`
}

// part is a string, or {"repeat", "times"}, or {"hex"}.
type part struct {
	raw  json.RawMessage
	text []byte
}

func (p *part) UnmarshalJSON(b []byte) error {
	p.raw = bytes.Clone(b)
	var s string
	if json.Unmarshal(b, &s) == nil {
		p.text = []byte(s)
		return nil
	}
	var o struct {
		Repeat string
		Times  int
		Hex    string
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	raw, err := hex.DecodeString(o.Hex)
	p.text = raw
	if !strings.Contains(o.Repeat, "#") {
		p.text = append(p.text, strings.Repeat(o.Repeat, o.Times)...)
		return err
	}
	for i := range o.Times {
		p.text = append(p.text, strings.ReplaceAll(o.Repeat, "#", strconv.Itoa(i))...)
	}
	return err
}

func (p part) MarshalJSON() ([]byte, error) { return p.raw, nil }

func (c row) document() []byte {
	var text []byte
	for _, p := range c.Text {
		text = append(text, p.text...)
	}
	return text
}

func readTable(t testing.TB) []row {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []row
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func outcome(c row) row {
	c.Canonical, c.Digest, c.Path, c.Error = "", "", "", ""
	d, err := document.Parse(c.document())
	var e *status.Error
	switch {
	case errors.As(err, &e):
		c.Error, c.Path = e.Error(), e.Attr("path").(string)
	case err != nil:
		c.Error = "not a status.Error: " + err.Error()
	default:
		canonical := document.Canonical(d)
		c.Canonical, c.Digest = string(canonical), fmt.Sprintf("%x", sha256.Sum256(canonical))
	}
	return c
}

// TestSchema compares the schema with its file. The flag -rewrite writes the file.
func TestSchema(t *testing.T) { golden.CompareJSON(t, "layout.schema.json", []byte(document.Schema())) }

// TestDocuments compares Parse and Canonical with the table. The flag -rewrite
// writes the table.
func TestDocuments(t *testing.T) {
	cases := readTable(t)
	if flag.Lookup("rewrite").Value.String() == "true" {
		rewriteTable(t, cases)
		return
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := outcome(c)
			if got.Canonical != c.Canonical || got.Digest != c.Digest {
				t.Errorf("canonical text\n%s (%s)\nwant\n%s (%s)", got.Canonical, got.Digest, c.Canonical, c.Digest)
			}
			if got.Error != c.Error || got.Path != c.Path {
				t.Errorf("error\n%s\nat %q, want\n%s\nat %q", got.Error, got.Path, c.Error, c.Path)
			}
		})
	}
}

func rewriteTable(t *testing.T, cases []row) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i, c := range cases {
		out.WriteString([]string{",", "[\n"}[min(1, 1-min(i, 1))])
		if err := enc.Encode(outcome(c)); err != nil {
			t.Fatal(err)
		}
	}
	out.WriteString("]\n")
	text := strings.ReplaceAll(out.String(), "\n,", ",\n")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// FuzzParse checks that Parse never panics, that a canonical text is its own
// canonical text, and that New accepts every document that Parse accepts.
func FuzzParse(f *testing.F) {
	for _, c := range readTable(f) {
		if text := c.document(); len(text) < 4096 {
			f.Add(text)
		}
	}
	f.Add([]byte(documents.Digits))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := document.Parse(text)
		if err != nil {
			var e *status.Error
			if !errors.As(err, &e) || e.Code != status.InvalidArgument {
				t.Fatalf("%v is not InvalidArgument", err)
			}
			return
		}
		first := document.Canonical(d)
		again, err := document.Parse(first)
		if err != nil {
			t.Fatalf("canonical text %s: %v", first, err)
		}
		if second := document.Canonical(again); !bytes.Equal(first, second) {
			t.Fatalf("canonical text\n%s\nbecomes\n%s", first, second)
		}
		if n := len(d.Mesh.Axes); n > 0 && d.Mesh.Axes[0].Size > 4096 {
			return // a large mesh takes too long
		}
		l, err := layout.Draft(d)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if !json.Valid(document.Report(l, document.ReportOptions{})) {
			t.Fatalf("the report of %s is not JSON", first)
		}
	})
}
