package main

import (
	"os"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/document"
)

// TestPage compares the page of a layout with the page and the layout.
func TestPage(t *testing.T) {
	plain, err := os.ReadFile("../wasm/page/dist/layout.html")
	if err != nil {
		t.Skipf("NOT TESTED: the page in the library; build it first: make page (%v)", err)
	}
	folder, err := buildLibrary(" page", "-tags=page")
	if err != nil {
		t.Fatal(err)
	}
	const slot = `id="document">`
	got, want := execute(t, compile(t, folder, "page.c")), strings.Replace(string(plain), slot, slot+canonicalLayout(t), 1)
	if got != want {
		t.Errorf("printed %d bytes, want the %d of the page with the layout in it", len(got), len(want))
	}
}

// TestWithoutThePage: a library without the page returns an error.
func TestWithoutThePage(t *testing.T) {
	want := "-9: page: this build carries no page, since it was built without the tag page; " +
		"pip install builds it in unless MESHFEED_PAGE=0 is set; in a checkout run: make page lib"
	if got := execute(t, compile(t, library(t), "page.c")); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// canonicalLayout returns the layout of check.h in canonical form.
func canonicalLayout(t *testing.T) string {
	t.Helper()
	d, err := document.Parse([]byte(`{"meshfeed":1,"mesh":{"axes":[["data",4],["model",2]]},` +
		`"arrays":{"image":{"shape":["B",3,6],"dtype":"float32","spec":["data",null,"model"]},` +
		`"label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":4},"dataset":{"records":100}}`))
	if err != nil {
		t.Fatal(err)
	}
	return string(document.Canonical(d))
}
