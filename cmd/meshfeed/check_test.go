package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckWithAModule checks, in every format, that the output of a module built
// from these sources equals the command's.
func TestCheckWithAModule(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	module := filepath.Join(t.TempDir(), "meshfeed.wasm")
	if text, err := exec.Command("../../wasm/guest/build.sh", "layout", module).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	paths, err := filepath.Glob("../../core/layout/picture/testdata/svg/*.json")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	check := func(input string, args ...string) (string, int) {
		var out, diagnostics bytes.Buffer
		code := run(t.Context(), append([]string{"check"}, args...), strings.NewReader(input), &out, &diagnostics)
		return out.String() + diagnostics.String(), code
	}
	compare := func(input string, args ...string) {
		t.Helper()
		want, code := check(input, args...)
		got, guest := check(input, append(args, "--wasm="+module)...)
		if got != want || guest != code {
			t.Errorf("%v: exit %d and\n%s\nwant %d and\n%s", args, guest, got, code, want)
		}
	}
	for _, path := range paths {
		compare("", path, "--strict")
	}
	compare("", paths[0], "--json")
	compare(`{"meshfeed":1,"meshfeed":1}`, "-", "--format", "github")
	t.Setenv("XDG_CACHE_HOME", module) // a file, so no cache can be made below it
	compare("", paths[0])
}

func TestALargeDocumentIsNamedWithItsSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(path, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, diagnostics bytes.Buffer
	code := run(t.Context(), []string{"check", path}, strings.NewReader(""), &out, &diagnostics)
	want := "meshfeed: " + path + " has 20,971,520 bytes, but a layout document may have 8,388,608\n  a mesh with devices in order needs no list of them\n"
	if code != exitFailure || diagnostics.String() != want {
		t.Errorf("exit %d, %s", code, diagnostics.String())
	}
}

func TestColors(t *testing.T) {
	if got := paint(true).severity("error"); got != "\x1b[1;31merror\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := paint(false).severity("error"); got != "error" {
		t.Errorf("%q", got)
	}
	if paintFor(&bytes.Buffer{}) {
		t.Error("a buffer is not a terminal")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !paintFor(terminal) {
		t.Error("a terminal is not colored")
	}
	t.Setenv("NO_COLOR", "1")
	if paintFor(terminal) {
		t.Error("a terminal is colored with NO_COLOR")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if paintFor(terminal) {
		t.Error("a terminal without colors is colored")
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain → ä 漢":       "plain → ä 漢",
		"a\nb\tc\x1b[31m":   `a\nb\tc\x1b[31m`,
		"\u202eright\u0085": `\u202eright\u0085`,
		"\xff\ufffd":        `\xff` + "\ufffd",
	} {
		if got := visible(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
