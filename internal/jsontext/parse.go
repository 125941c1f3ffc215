package jsontext

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of objects and lists.
const MaxDepth = 256

// Parse checks that a text is one JSON value, and returns the value. The text must
// be UTF-8, and nested at most MaxDepth levels deep. Without an error, Parse
// allocates nothing: the value shares the text. An error is an *Error.
func Parse(text []byte) (Value, error) {
	if err := Check(text, MaxDepth); err != nil {
		return nil, err
	}
	return Value(text).Trim(), nil
}

// Check makes sure that a text is one JSON value in UTF-8, nested at most depth
// levels deep. It allocates only for an error.
func Check(text []byte, depth int) *Error {
	p := parser{text: text, most: depth}
	p.space()
	p.value(0)
	p.space()
	if p.pos < len(text) {
		p.fail("the document ends here, but more text follows")
	}
	return p.err
}

// Error is the reason why a text is not JSON.
type Error struct {
	What   string // the message
	Offset int    // offset of the first wrong byte, or the length of a text that ends early
	Path   []Step // from the root to the value with that byte
}

// Step is one step down, to a member of an object or to an element of a list.
type Step struct {
	Key    []byte // in quotes, as in the text; nil for an element
	Number int    // number of the element
}

func (e *Error) Error() string { return fmt.Sprintf("%s (at byte %d)", e.What, e.Offset) }

// below prepends a step to the path. The path is built only after an error, while
// the recursive calls of the parser return.
func (e *Error) below(s Step) { e.Path = append([]Step{s}, e.Path...) }

// parser checks a text from the start to the end.
type parser struct {
	text []byte
	pos  int // position of the next byte
	most int // the largest depth
	err  *Error
}

// fail stores the first error. It moves to the end of the text, so that parsing ends.
func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = &Error{What: what, Offset: p.pos}
	}
	p.pos = len(p.text)
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		p.members(c+2, depth+1) // the codes of '}' and ']' are the codes of '{' and '[' plus two
	case c == '"':
		p.str()
	case c == '-' || '0' <= c && c <= '9':
		p.number()
	case p.word("true"), p.word("false"), p.word("null"):
	default:
		p.unexpected("a value")
	}
}

// unexpected fails with a message about the next character.
func (p *parser) unexpected(want string) {
	if p.pos == len(p.text) {
		p.fail("expected " + want + ", but the text ends")
		return
	}
	r, size := utf8.DecodeRune(p.text[p.pos:])
	if r == utf8.RuneError && size == 1 {
		p.fail(fmt.Sprintf("expected %s, but found the byte 0x%02x, which is not UTF-8", want, p.text[p.pos]))
		return
	}
	p.fail("expected " + want + ", but found " + strconv.QuoteRune(r))
}

// word moves past w if the text continues with it, and reports whether it does.
func (p *parser) word(w string) bool {
	if !bytes.HasPrefix(p.text[p.pos:], []byte(w)) {
		return false
	}
	p.pos += len(w)
	return true
}

// members reads an object or a list with end as its last byte.
func (p *parser) members(end byte, depth int) {
	if depth > p.most {
		p.fail("values are nested deeper than " + strconv.Itoa(p.most))
		return
	}
	p.pos++
	p.space()
	if p.peek() == end {
		p.pos++
		return
	}
	for i := 0; p.err == nil; i++ {
		p.space()
		if end == '}' {
			p.member(depth)
		} else if p.value(depth); p.err != nil {
			p.err.below(Step{Number: i})
		}
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

// member reads a key and its value. If the key itself is wrong, the path of the
// error ends at the object.
func (p *parser) member(depth int) {
	if p.peek() != '"' {
		p.unexpected("a key in quotes")
		return
	}
	start := p.pos
	if p.str(); p.err != nil {
		return
	}
	key := p.text[start:p.pos]
	p.space()
	if p.peek() == ':' {
		p.pos++
		p.space()
		p.value(depth)
	} else {
		p.unexpected("':'")
	}
	if p.err != nil {
		p.err.below(Step{Key: key})
	}
}

// str reads a string and checks its escapes and its UTF-8.
func (p *parser) str() {
	for p.pos++; p.pos < len(p.text); {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return
		case c == '\\':
			n, fault := escapeLength(p.text[p.pos:])
			if fault != "" {
				p.fail(fault)
				return
			}
			p.pos += n
		case c < 0x20:
			p.fail(fmt.Sprintf("a string may not contain the control character 0x%02x", c))
			return
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.text[p.pos:])
			if r == utf8.RuneError && size == 1 {
				p.fail(fmt.Sprintf("the byte 0x%02x is not UTF-8", c))
				return
			}
			p.pos += size
		}
	}
	p.fail("a string has no end")
}

func (p *parser) number() {
	if p.peek() == '-' {
		p.pos++
	}
	start := p.pos
	p.digits()
	if p.pos > start+1 && p.text[start] == '0' {
		p.pos = start
		p.fail("a number may not begin with 0")
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
	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	if p.pos == start {
		p.unexpected("a digit")
	}
}

// escapeLength returns the length of the escape sequence at the start of the text,
// or a message that describes its fault.
func escapeLength(text []byte) (length int, fault string) {
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
