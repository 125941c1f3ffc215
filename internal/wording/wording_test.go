package wording_test

import (
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/wording"
)

func TestSuggest(t *testing.T) {
	type schedule string
	few := []schedule{"gpipe", "1f1b"}
	many := append(few, "a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1", "i1")
	for got, want := range map[string]string{
		wording.Suggest("1F1B", few):  `did you mean "1f1b"? The names are "gpipe", "1f1b"`,
		wording.Suggest("zb", few):    `use one of "gpipe", "1f1b"`,
		wording.Suggest("1F1B", many): `did you mean "1f1b"?`,
	} {
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestWording(t *testing.T) {
	long := strings.Repeat("é", 40)
	for got, want := range map[string]string{
		wording.Quote(`a"b`):                           `"a\"b"`,
		wording.Quote(long):                            `"` + strings.Repeat("é", 30) + `…"`,
		wording.Cut(long, 5):                           "éé…",
		wording.Plain("a\nb"):                          `a\nb`,
		wording.QuotedList([]string{"a", "b"}):         `"a", "b"`,
		wording.Shape(nil) + wording.Shape([]int{3}):   "()(3,)",
		wording.Shape([]int{3, 4}):                     "(3, 4)",
		wording.Span(0, 64):                            "0:64",
		wording.Thousands(-1234567):                    "-1,234,567",
		wording.Count(1, "batch", "batches"):           "1 batch",
		wording.Count(2000, "batch", "batches"):        "2,000 batches",
		wording.Bytes(960) + " " + wording.Bytes(8448): "960 B 8.25 KiB",
		wording.Bytes(1023 << 10):                      "1 MiB",
		wording.Bytes(1<<53 + 1):                       "unknown",
		wording.Times(5, 2):                            "2.5 times",
		wording.Times(1001, 1000):                      "just over once",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"hidden", "heads", "kv_heads", "h100-80", "h100-pcie"}
	for name, want := range map[string]string{
		"hiden": "hidden", "Heads": "heads", "kvheads": "kv_heads", "h100": "", "h100-90": "h100-80", "hh": "", "hxxden": "hidden", "hxxxen": "", "": "", "x": "",
		strings.Repeat("hidden", 20): "",
	} {
		if got := wording.Nearest(name, known); got != want {
			t.Errorf("the nearest name of %q is %q, want %q", name, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	const text = "Options.MaxHostBytes is -1; set loader.Options.IO, not DatasetOptions.Inputs, Options.x, Options. or Options"
	if got, want := wording.Options(text, "", "_"), "max_host_bytes is -1; set io, not DatasetOptions.Inputs, Options.x, Options. or Options"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := wording.Options("Options.MaxHostBytes", "--", "-"), "--max-host-bytes"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
