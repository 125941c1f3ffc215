package layout

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/jsontext"
	"github.com/meshfeed/meshfeed/core/status"
)

// scanner is the first of two passes over a document's text. It checks
// whatever holds for the text as a whole and allocates nothing, however the
// text was made: the grammar of JSON, UTF-8, depth, and that every number is
// an integer within ±2^53. The second pass, the reader, may rely on it.
type scanner struct {
	text []byte
	pos  int
	trail
}

func scan(text []byte) error {
	s := scanner{text: text}
	s.space()
	if err := s.value(); err != nil {
		return err
	}
	s.space()
	if s.pos < len(text) {
		return s.fail("the document ends here, but more text follows")
	}
	return nil
}

// fail gives an error at the current place.
func (s *scanner) fail(format string, args ...any) *status.Error {
	line := 1 + bytes.Count(s.text[:s.pos], []byte{'\n'})
	column := s.pos - bytes.LastIndexByte(s.text[:s.pos], '\n')
	return fail(s.pointer(), "%s (line %d, byte %d)", fmt.Sprintf(format, args...), line, column)
}

// peek gives the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{':
		return s.members('}', s.member)
	case c == '[':
		return s.members(']', s.value)
	case c == '"':
		return s.str()
	case c == '-' || '0' <= c && c <= '9':
		return s.integer()
	case s.word("true"), s.word("false"), s.word("null"):
		return nil
	}
	return s.unexpected("a value")
}

func (s *scanner) unexpected(want string) error {
	if s.pos == len(s.text) {
		return s.fail("expected %s, but the text ends", want)
	}
	r, size := utf8.DecodeRune(s.text[s.pos:])
	if r == utf8.RuneError && size == 1 {
		return s.fail("expected %s, but found the byte 0x%02x, which is not UTF-8", want, s.text[s.pos])
	}
	return s.fail("expected %s, but found %q", want, r)
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.text[s.pos:], []byte(w)) {
		return false
	}
	s.pos += len(w)
	return true
}

// members reads the members of an object or list, up to its end.
func (s *scanner) members(end byte, one func() error) error {
	if s.depth == MaxDepth {
		return s.fail("values are nested deeper than %d", MaxDepth)
	}
	s.pos++
	s.space()
	if s.peek() == end {
		s.pos++
		return nil
	}
	s.depth++
	for i := 0; ; i++ {
		s.path[s.depth-1] = step{number: i}
		s.space()
		if err := one(); err != nil {
			return err
		}
		s.space()
		if c := s.peek(); c != ',' && c != end {
			s.depth--
			return s.unexpected(fmt.Sprintf("',' or '%c'", end))
		}
		s.pos++
		if s.text[s.pos-1] == end {
			s.depth--
			return nil
		}
	}
}

func (s *scanner) member() error {
	if s.peek() != '"' {
		s.depth--
		return s.unexpected("a key in quotes")
	}
	start := s.pos
	s.depth-- // until the key is known, the object is the place
	if err := s.str(); err != nil {
		return err
	}
	s.depth++
	s.path[s.depth-1] = step{key: s.text[start:s.pos]}
	s.space()
	if s.peek() != ':' {
		return s.unexpected("':'")
	}
	s.pos++
	s.space()
	return s.value()
}

// str reads a string and checks its escapes and its UTF-8.
func (s *scanner) str() error {
	s.pos++
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.fail("a string may not contain the control character 0x%02x", c)
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.text[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return s.fail("the byte 0x%02x is not UTF-8", c)
			}
			s.pos += size
		}
	}
	return s.fail("a string has no end")
}

func (s *scanner) escape() error {
	n, fault := jsontext.Escape(s.text[s.pos:])
	if fault != "" {
		return s.fail("%s", fault)
	}
	s.pos += n
	return nil
}

// integer reads a number and refuses all that JSON allows beyond integers.
func (s *scanner) integer() error {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	first, n := s.pos, int64(0)
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		if n <= MaxInteger {
			n = 10*n + int64(c-'0')
		}
		s.pos++
	}
	digits, next, end := s.text[first:s.pos], s.peek(), s.pos
	s.pos = start
	switch {
	case len(digits) == 0:
		return s.fail("'-' stands without a digit")
	case len(digits) > 1 && digits[0] == '0':
		return s.fail("a number may not begin with 0")
	case next == '.' || next|0x20 == 'e':
		return s.fail("the number is not written as an integer")
	case n > MaxInteger:
		return s.fail("the number is outside ±2^53")
	}
	s.pos = end
	return nil
}
