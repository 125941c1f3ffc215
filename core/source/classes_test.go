package source_test

import (
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
)

// TestClasses checks the texts about names of classes.
func TestClasses(t *testing.T) {
	long := strings.Repeat("é", 50)
	for _, c := range []struct {
		a, b      []string
		different string
		text      string
	}{
		{nil, []string{"a"}, "", "0 classes: "},
		{[]string{"a"}, []string{"a"}, "", `1 class: "a"`},
		{[]string{"a", "b"}, []string{"a", "c", "d"}, `class 1 is "b" and "c"`, `2 classes: "a", "b"`},
		{[]string{"a", "b", "c\n"}, []string{"a"}, "there are 3 and 1 classes", `3 classes: "a", "b", "c\n"`},
		{[]string{long, "b", "c", "d"}, []string{""}, `class 0 is "` + long[:80] + `" and ""`, `4 classes: "` + long[:80] + `", "b", "c", …`},
	} {
		if got := source.DifferentClasses(c.a, c.b); got != c.different {
			t.Errorf("%q and %q: %s", c.a, c.b, got)
		}
		if got := source.ClassesText(c.a); got != c.text {
			t.Errorf("%q: %s", c.a, got)
		}
	}
}
