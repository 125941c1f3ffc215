package arch

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMap checks the graph of packages in CONTRIBUTING.md: every arrow is an
// import that the table above allows, and no package that other modules can
// import is missing.
func TestMap(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```mermaid\n")
	graph, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("CONTRIBUTING.md has no graph of packages")
	}
	drawn := map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(\S+) --> (\S+)`).FindAllStringSubmatch(graph, -1) {
		from, to := arrow[1], arrow[2]
		drawn[from], drawn[to] = true, true
		if !slices.ContainsFunc(reachable(from), func(pattern string) bool { return matches(pattern, to) }) {
			t.Errorf("CONTRIBUTING.md draws %s --> %s, but tests/arch does not allow this import", from, to)
		}
	}
	for path := range allowed {
		open := !strings.Contains("/"+path, "/internal/") && !strings.HasPrefix(path, "tests/") && !strings.HasPrefix(path, "docs/")
		if open && !strings.HasSuffix(path, "test") && !slices.Contains(tier0, path) && !drawn[path] {
			t.Errorf("the graph in CONTRIBUTING.md has no package %s", path)
		}
	}
	for path := range drawn {
		if _, known := allowed[path]; !known {
			t.Errorf("the graph in CONTRIBUTING.md has the package %s, which does not exist", path)
		}
	}
}
