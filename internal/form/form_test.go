package form_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/internal/form"
)

var forms = []*form.Form{form.Layout, form.Strategy, form.Memory, form.Measurements, form.Diagram}

// documents has a document of every form, in the order of forms.
var documents = []string{
	`{"meshfeed":1,"mesh":{},"arrays":{},"batch":{"size":4},"dataset":{}}`,
	`{"meshfeed":1,"model":{},"training":{},"cluster":{}}`,
	`{"meshfeed":1,"mesh":{},"arrays":{},"optimizer":"adamw"}`,
	`{"meshfeed":1,"processes":[]}`,
	`{"meshfeed":1,"diagram":{}}`,
}

var remedies = []string{
	"meshfeed check and meshfeed plan read layouts", "meshfeed advise reads strategy documents",
	"meshfeed memory reads memory documents", "loader.report() and mf_diagnose read measurements documents", "meshfeed draw reads diagram documents",
}

func read(f *form.Form, text string) error { return f.Read([]byte(text), f.Skipping()) }

// TestDocumentOfAnotherForm checks that the error names the form that a document has.
func TestDocumentOfAnotherForm(t *testing.T) {
	for i, f := range forms {
		for j, found := range forms {
			want := fmt.Sprintf("%s: expected a %s document, but found a %s document; %s", f.Name, f.Name, found.Name, remedies[j])
			if i == j {
				want = "<nil>"
			}
			if got := fmt.Sprint(read(f, documents[j])); got != want {
				t.Errorf("%s of %s\n got %s\nwant %s", f.Name, documents[j], got, want)
			}
		}
	}
}

// TestOtherEncodings checks the hint about texts that are not plain UTF-8.
func TestOtherEncodings(t *testing.T) {
	const hint = "; save the text as UTF-8 without a byte order mark"
	for text, want := range map[string]string{
		"\ufeff{}":           `layout: expected a value, but found '\ufeff' (line 1, byte 1)` + hint,
		"\xff\xfe{\x00}\x00": `layout: expected a value, but found the byte 0xff, which is not UTF-8 (line 1, byte 1)` + hint,
		"\xfe\xff\x00{\x00}": `layout: expected a value, but found the byte 0xfe, which is not UTF-8 (line 1, byte 1)` + hint,
		"{\x00}\x00":         `layout: expected a key in quotes, but found '\x00' (line 1, byte 2)` + hint,
		"\x00{\x00}":         `layout: expected a value, but found '\x00' (line 1, byte 1)` + hint,
		"\x00\x00":           `layout: expected a value, but found '\x00' (line 1, byte 1)`,
	} {
		if got := fmt.Sprint(read(form.Layout, text)); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"meshfeed":1,"model":{},"devices":8,"candidates":[],"layout":null}`: `layout: expected a layout document, but found a report of meshfeed advise; its member "layout" is a layout document`,
		`{"meshfeed":2,"mesh":{},"arrays":{}}`:                                `layout: /meshfeed: the document has version 2, but this release reads version 1`,
		`{"meshfeed":1,"mesh":{},"arays":{}}`:                                 `layout: /arays: "arays" is not a key; did you mean "arrays"? The keys here are meshfeed, mesh, arrays, batch, dataset, loading, prefetch, budget`,
		`{"meshfeed":1,"arrays":{},"model":{}}`:                               `layout: /model: "model" is not a key; the keys here are meshfeed, mesh, arrays, batch, dataset, loading, prefetch, budget`, // the document matches two forms equally
		`{"meshfeed":1}`:                                                      `layout: a layout document needs the key "mesh"`,
		`{"diagram":{}`:                                                       `layout: expected ',' or '}', but the text ends (line 1, byte 14)`,
		`[{"diagram":1}]`:                                                     `layout: expected a layout document, but found a list`,
	} {
		if got := fmt.Sprint(read(form.Layout, text)); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}
