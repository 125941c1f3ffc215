package layout

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// escape makes a name a token of a JSON Pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// at appends a number to a JSON Pointer.
func at(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// pointer gives the JSON Pointer of a path. One is made only for an error,
// since a list may have a million elements. A name that is longer than a name
// may be is cut.
func pointer(path []jsontext.Step) string {
	p := ""
	for _, s := range path {
		if s.Key == nil {
			p = at(p, s.Number)
		} else {
			p += "/" + escape(cut(jsontext.Unquote(s.Key), MaxName))
		}
	}
	return p
}

// place gives the line of an offset into a text, and the byte in it.
func place(text []byte, offset int) string {
	line := 1 + bytes.Count(text[:offset], []byte{'\n'})
	return fmt.Sprintf("line %d, byte %d", line, offset-bytes.LastIndexByte(text[:offset], '\n'))
}

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
