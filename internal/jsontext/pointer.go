package jsontext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/internal/wording"
)

// Escape makes a name a token of a JSON Pointer.
func Escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// Element appends the number of a list element to a JSON Pointer.
func Element(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// pointer formats a path as a JSON Pointer. It cuts keys to maxString bytes.
// It is called for errors only, because a list may have a million elements.
func pointer(path []Step, maxString int) string {
	p := ""
	for _, s := range path {
		if s.Key == nil {
			p = Element(p, s.Number)
		} else {
			p += "/" + Escape(wording.Cut(unquote(s.Key), maxString))
		}
	}
	return p
}

// position formats an offset in a text as the line and the byte in that line.
func position(text []byte, offset int) string {
	line := 1 + bytes.Count(text[:offset], []byte{'\n'})
	return fmt.Sprintf("line %d, byte %d", line, offset-bytes.LastIndexByte(text[:offset], '\n'))
}
