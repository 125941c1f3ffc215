//go:build xla

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

// TestMain lets the test binary run as the child process that tries a plugin, as
// main does.
func TestMain(m *testing.M) {
	gomlxfeed.RunProbe()
	os.Exit(m.Run())
}

func TestDevicesWithXLA(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin.so")
	_, got, code := devices("xla:" + path)
	if want := "meshfeed: gomlxfeed: \"xla:" + path + "\" was not opened: there is no file " + path + "\n"; got != want || code != exitFailure {
		t.Errorf("exit %d\ngot  %s\nwant %s", code, got, want)
	}
	if err := os.WriteFile(path, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, got, code = devices("xla:" + path)
	if want := "meshfeed: gomlxfeed: \"xla:" + path + "\" was not opened: "; !strings.HasPrefix(got, want) || code != exitFailure {
		t.Errorf("exit %d\ngot  %s\nwant %s…", code, got, want)
	}
}
