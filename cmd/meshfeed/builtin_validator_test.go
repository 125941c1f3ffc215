//go:build page

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestCheckWithTheBuiltInValidator checks that --wasm without a file runs the
// page's module, and that its output equals the command's.
func TestCheckWithTheBuiltInValidator(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const document = `{"meshfeed":1,"mesh":{"axes":[["data",4]]},"arrays":{"x":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":30}}`
	check := func(args ...string) (string, int) {
		var out, diagnostics bytes.Buffer
		code := run(t.Context(), append([]string{"check"}, args...), strings.NewReader(document), &out, &diagnostics)
		return out.String() + diagnostics.String(), code
	}
	want, code := check("-")
	got, guest := check("--wasm", "-")
	if got != want || guest != code || code != exitProblem {
		t.Errorf("exit %d and\n%s\nwant %d and\n%s", guest, got, code, want)
	}
}
