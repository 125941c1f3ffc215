//go:build !xla

package main

import "testing"

func TestDevicesWithoutXLA(t *testing.T) {
	_, got, code := devices("xla:/opt/plugin.so")
	want := `meshfeed: gomlxfeed: "xla:/opt/plugin.so": this program was built without XLA
  a Go program imports _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"; the command and the C library are built with -tags xla, the Python package by MESHFEED_XLA=1 pip install .
`
	if got != want || code != exitFailure {
		t.Errorf("exit %d\ngot  %s\nwant %s", code, got, want)
	}
}
