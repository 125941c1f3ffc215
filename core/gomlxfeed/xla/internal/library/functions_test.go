package library

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func goXLA(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "pjrt")
}

func matches(t *testing.T, file, expression string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	return found
}

// TestFunctionsAreTheHeaders compares the table with go-xla's C header.
func TestFunctionsAreTheHeaders(t *testing.T) {
	fields := matches(t, filepath.Join(goXLA(t), "pjrt_c_api.h"), `(?m)^\s*_PJRT_API_STRUCT_FIELD\((\w+)\);`)
	if len(fields) < len(functions) || !slices.Equal(fields[:len(functions)], functions) {
		t.Errorf("the table is\n%v\nbut the header has\n%v", functions, fields)
	}
}

// TestRequiredIsWhatIsCalled compares the lists with the calls in go-xla's source.
func TestRequiredIsWhatIsCalled(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(goXLA(t), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		// from Go by a wrapper, from C directly
		for _, name := range append(matches(t, file, `C\.call_(PJRT_\w+)\(`), matches(t, file, `api->(PJRT_\w+)\(`)...) {
			called[name] = true
		}
	}
	if len(called) < 30 {
		t.Fatalf("found only %d calls", len(called))
	}
	delete(called, "PJRT_Buffer_Bitcast") // go-xla checks that it exists
	known := append(Required(), ForSharing()...)
	for name := range called {
		if !slices.Contains(known, name) {
			t.Errorf("go-xla calls %s, which is not required of a plugin", name)
		}
	}
	for _, name := range known {
		if !called[name] {
			t.Errorf("%s is required of a plugin, but go-xla does not call it", name)
		}
	}
}
