package arch

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestGoVersion sees that go.mod asks for no later version of Go than a
// required module does. Every program that imports this module has to use that
// version, so an update of Go by itself does not belong there.
func TestGoVersion(t *testing.T) {
	text, err := os.ReadFile("../../go.mod") // also tells Go's cache of results what this test reads
	if err != nil {
		t.Fatal(err)
	}
	const newest = "github.com/gomlx/gomlx"
	asked, err := exec.Command("go", "list", "-m", "-f", "{{.GoVersion}}", newest).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "\ngo " + strings.TrimSpace(string(asked)) + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("go.mod does not say %q, the version that %s asks for", strings.TrimSpace(want), newest)
	}
}
