package layout

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/jsontext"
)

// escape makes a name a token of a JSON Pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// at appends a number to a JSON Pointer.
func at(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// trail is the way from the root of a document to a value. It becomes a JSON
// Pointer only for an error, since a list may have a million elements.
type trail struct {
	depth int
	path  [MaxDepth]step
}

// step is one token of a trail: a key as it stands in the text, or a number.
type step struct {
	key    []byte // nil in a list
	number int
}

func (t *trail) pointer() string {
	path := ""
	for _, s := range t.path[:t.depth] {
		if s.key == nil {
			path = at(path, s.number)
		} else {
			path += "/" + escape(jsontext.Unquote(s.key))
		}
	}
	return path
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
