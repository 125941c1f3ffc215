package records18_test

import (
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/tests/golden"
)

//go:generate go test -run TestTwin -args -rewrite

const mark = "// Code generated from package records18 by go generate; DO NOT EDIT.\n\n"

// toV17 makes package records of package records18: v17 of Arrow's library has another
// path, and calls a record batch a record.
var toV17 = strings.NewReplacer(
	"Package records does the same for\n// apache/arrow/go v17", "Package records18 does the same for\n// apache/arrow-go v18",
	"apache/arrow-go", "apache/arrow/go", "v18", "v17", "records18", "records", "RecordBatch", "Record",
)

// TestTwin compares package records with this package, and runs these tests with package
// records and v17 of Arrow's library. An overlay makes them files of that package.
func TestTwin(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	overlay, kept := map[string]string{}, []string{}
	for _, name := range files {
		switch text := twin(t, name); {
		case name == "twin_test.go":
		case strings.HasSuffix(name, "_test.go"):
			at, err := filepath.Abs(filepath.Join("../records", name))
			if err != nil {
				t.Fatal(err)
			}
			overlay[at] = filepath.Join(temporary, name)
			write(t, overlay[at], text)
		default:
			kept = append(kept, name)
			golden.Compare(t, filepath.Join("../records", name), mark+text)
		}
	}
	golden.Only(t, "../records", kept)
	replacements, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(temporary, "overlay.json")
	write(t, list, string(replacements))
	out, err := exec.Command("go", append([]string{"test", "-v", "-overlay", list, "../records"}, race()...)...).CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS: Test") < 10 {
		t.Errorf("%v\n%s", err, out)
	}
}

// twin translates a file of this package.
func twin(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	formatted, err := format.Source([]byte(toV17.Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return string(formatted)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// race returns the flag -race if this test has it.
func race() []string {
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return []string{"-race", "-buildmode=exe"}
	}
	return nil
}
