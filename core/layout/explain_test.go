package layout

import (
	"strings"
	"testing"
)

func TestEveryCodeIsExplained(t *testing.T) {
	for _, c := range Codes() {
		if text := c.Explain(); len(text) < 40 || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", c, text)
		}
	}
	if n := len(explanations); n != len(Codes()) {
		t.Errorf("%d explanations of %d codes", n, len(Codes()))
	}
	if text := Code("no-such-code").Explain(); text != "" {
		t.Errorf("%q", text)
	}
}
