package main

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/diagram/document"
)

// TestDiagram checks that the C library and the Go package draw the same.
func TestDiagram(t *testing.T) {
	d, err := document.Draw([]byte(`{"meshfeed":1,"diagram":{"mesh":{"axes":[["data",4],["model",2]]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := d.Text(0) + d.Text(60) + d.SVG(0) + d.SVG(390)
	if got := execute(t, compile(t, library(t), "diagram.c")); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
