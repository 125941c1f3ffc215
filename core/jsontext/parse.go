package jsontext

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of objects and lists.
const MaxDepth = 256

// Parse checks that the text is one JSON value in UTF-8, nested at most
// MaxDepth deep, and gives it. It allocates nothing, and the value shares the
// text. An error says at which byte the text is wrong.
func Parse(text []byte) (Value, error) {
	p := parser{text: text}
	p.space()
	start := p.pos
	p.value(0)
	end := p.pos
	p.space()
	if p.err == nil && p.pos < len(text) {
		p.fail("more text follows the value")
	}
	if p.err != nil {
		return nil, p.err
	}
	return Value(text[start:end:end]), nil
}

// parser stops at the first fault: from then on it is at the end of the text.
type parser struct {
	text []byte
	pos  int
	err  error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s (at byte %d)", what, p.pos)
	}
	p.pos = len(p.text)
}

// peek gives the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) space() {
	for p.pos < len(p.text) && bytes.IndexByte([]byte(" \t\r\n"), p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) value(depth int) {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		p.members(c+2, depth+1) // '}' and ']' stand two after '{' and '['
	case c == '"':
		p.str()
	case c == '-' || '0' <= c && c <= '9':
		p.number()
	case p.word("true"), p.word("false"), p.word("null"):
	default:
		p.unexpected("a value")
	}
}

func (p *parser) unexpected(want string) {
	if p.pos == len(p.text) {
		p.fail("expected " + want + ", but the text ends")
		return
	}
	r, _ := utf8.DecodeRune(p.text[p.pos:])
	p.fail("expected " + want + ", but found " + strconv.QuoteRune(r))
}

func (p *parser) word(w string) bool {
	if !bytes.HasPrefix(p.text[p.pos:], []byte(w)) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *parser) members(end byte, depth int) {
	if depth > MaxDepth {
		p.fail("values are nested deeper than " + strconv.Itoa(MaxDepth))
		return
	}
	p.pos++
	p.space()
	if p.peek() == end {
		p.pos++
		return
	}
	for p.err == nil {
		p.space()
		if end == '}' {
			p.key()
		}
		p.value(depth)
		p.space()
		switch p.peek() {
		case end:
			p.pos++
			return
		case ',':
			p.pos++
		default:
			p.unexpected("',' or '" + string(rune(end)) + "'")
		}
	}
}

func (p *parser) key() {
	if p.peek() != '"' {
		p.unexpected("a key in quotes")
		return
	}
	p.str()
	p.space()
	if p.peek() != ':' {
		p.unexpected("':'")
		return
	}
	p.pos++
	p.space()
}

// str reads a string and checks its escapes and its UTF-8.
func (p *parser) str() {
	for p.pos++; p.pos < len(p.text); {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return
		case c == '\\':
			n, fault := Escape(p.text[p.pos:])
			if fault != "" {
				p.fail(fault)
				return
			}
			p.pos += n
		case c < 0x20:
			p.fail("a string contains a control character")
			return
		default:
			r, size := utf8.DecodeRune(p.text[p.pos:])
			if r == utf8.RuneError && size == 1 {
				p.fail("a string is not UTF-8")
				return
			}
			p.pos += size
		}
	}
	p.fail("a string has no end")
}

// number reads a number as the grammar of JSON has it.
func (p *parser) number() {
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else {
		p.digits()
	}
	if p.peek() == '.' {
		p.pos++
		p.digits()
	}
	if p.peek()|0x20 == 'e' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		p.digits()
	}
}

func (p *parser) digits() {
	start := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	if p.pos == start {
		p.unexpected("a digit")
	}
}

// Escape gives the length of the escape that the text of a string goes on
// with, or says what is wrong with it.
func Escape(text []byte) (length int, fault string) {
	if len(text) < 2 {
		return 0, "a string has no end"
	}
	if text[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), text[1]) < 0 {
			return 0, "a string contains an escape that JSON does not know"
		}
		return 2, ""
	}
	unit, ok := hex4(text[2:])
	switch {
	case !ok:
		return 0, `\u needs four hexadecimal digits`
	case unit < 0xd800 || unit > 0xdfff:
		return 6, ""
	}
	if rest, ok := bytes.CutPrefix(text[6:], []byte(`\u`)); ok && unit < 0xdc00 {
		if low, ok := hex4(rest); ok && low >= 0xdc00 && low <= 0xdfff {
			return 12, ""
		}
	}
	return 0, `\u` + string(text[2:6]) + " is half of a surrogate pair, which is not UTF-8"
}

func hex4(text []byte) (unit uint64, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for _, c := range text[:4] {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return 0, false
		}
	}
	unit, err := strconv.ParseUint(string(text[:4]), 16, 16)
	return unit, err == nil
}
