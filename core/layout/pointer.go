package layout

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// escape makes a name a token of a JSON Pointer.
func escape(name string) string { return pointerEscapes.Replace(name) }

// at appends a number to a JSON Pointer.
func at(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// quote shows a name in a message, cut where it is long.
func quote(name string) string { return strconv.Quote(cut(name, 60)) }

// short shows a path in a message, cut where it is long.
func short(path string) string { return cut(path, 120) }

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
