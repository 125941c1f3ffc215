package layout

import (
	"strings"
	"testing"
)

func TestEveryCodeIsExplained(t *testing.T) {
	for _, c := range Codes() {
		if text := Explain(c); len(text) < 40 || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", c, text)
		}
	}
	if n := len(explanations); n != len(Codes()) {
		t.Errorf("%d explanations of %d codes", n, len(Codes()))
	}
	if text := Explain("no-such-code"); text != "" {
		t.Errorf("%q", text)
	}
}
