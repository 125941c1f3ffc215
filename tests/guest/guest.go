// Package guest builds the WebAssembly modules of wasm/guest, and runs them in Node. A
// test that uses it runs in a folder two levels below the root of the repository.
package guest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Build builds the module "layout" or "strategy" as the file out, and returns its bytes.
func Build(name, out string) ([]byte, error) {
	if text, err := exec.Command("../../wasm/guest/build.sh", name, out).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return os.ReadFile(out)
}

// Question is a question to a module, in the form that shim.mjs reads.
type Question struct {
	Name  string    `json:"-"`
	Ask   string    `json:"ask"`
	Input []byte    `json:"input,omitempty"`
	Size  int64     `json:"size,omitempty"`
	Args  [4]uint32 `json:"args"`
}

// Ask returns the replies of a module that Node runs with a shim like a page's. It skips
// the test without Node.
func Ask(t *testing.T, module string, list []Question) [][]byte {
	t.Helper()
	var input strings.Builder
	enc := json.NewEncoder(&input)
	for i := range list {
		if err := enc.Encode(list[i]); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node(t), "../../tests/guest/shim.mjs", module)
	cmd.Stdin = strings.NewReader(input.String())
	var diagnostics bytes.Buffer
	cmd.Stderr = &diagnostics
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, diagnostics.String())
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(list) {
		t.Fatalf("%d replies to %d questions: %s", len(lines), len(list), diagnostics.String())
	}
	replies := make([][]byte, len(list))
	for i, line := range lines {
		if replies[i], err = base64.StdEncoding.DecodeString(line); err != nil {
			t.Fatal(err)
		}
	}
	return replies
}

// node returns the path of the Node that make fetched, or of the system's.
func node(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"../../.build/node/bin/node", "node"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: there is neither .build/node, which make page fetches, nor a node on PATH")
	return ""
}

// CheckSize compares the size of a module, as it is and as gzip, with budgets in bytes, so
// that a new dependency does not go unnoticed. Go's runtime takes 2.0 MB, and package fmt 0.7
// with os and reflect.
func CheckSize(t *testing.T, module []byte, raw, packed int) {
	t.Helper()
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(module); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d as gzip", len(module), zipped.Len())
	if len(module) > raw || zipped.Len() > packed {
		t.Errorf("the module has %d bytes and %d as gzip, its budgets are %d and %d", len(module), zipped.Len(), raw, packed)
	}
}
