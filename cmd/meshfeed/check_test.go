package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckAsksAModule sees that a module built of these sources says what the
// command says, in every format.
func TestCheckAsksAModule(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	module := filepath.Join(t.TempDir(), "meshfeed.wasm")
	if text, err := exec.Command("../../wasm/guest/build.sh", module).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	paths, err := filepath.Glob("../../core/layout/testdata/svg/*.json")
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
	t.Setenv("XDG_CACHE_HOME", module) // a file, where no folder can be made
	compare("", paths[0])
}
