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
func quote(name string) string {
	const most = 60
	if len(name) <= most {
		return strconv.Quote(name)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return strconv.Quote(name[:cut] + "…")
}
