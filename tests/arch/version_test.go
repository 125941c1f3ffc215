package arch

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestGoVersion checks that go.mod requires no later version of Go than a
// required module does. Every program that imports this module must use that
// version, so go.mod must not change with every update of Go.
func TestGoVersion(t *testing.T) {
	text, err := os.ReadFile("../../go.mod") // reading it here makes Go's test cache depend on it
	if err != nil {
		t.Fatal(err)
	}
	const newest = "github.com/gomlx/gomlx"
	asked, err := exec.Command("go", "list", "-m", "-f", "{{.GoVersion}}", newest).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "\ngo " + strings.TrimSpace(string(asked)) + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("go.mod does not contain %q, the version that %s requires", strings.TrimSpace(want), newest)
	}
}
