package jsontext

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote returns the value of a JSON string in quotes. The text must be valid: parse
// rejects other escapes and halves of surrogate pairs before.
func unquote(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	return string(appendUnquoted(make([]byte, 0, len(text)), text))
}

// appendUnquoted appends the value of a JSON string in quotes to out.
func appendUnquoted(out, text []byte) []byte {
	text = text[1 : len(text)-1]
	for i := 0; i < len(text); i++ {
		run := bytes.IndexByte(text[i:], '\\')
		if run < 0 {
			return append(out, text[i:]...)
		}
		out = append(out, text[i:i+run]...)
		i += run + 1
		if text[i] != 'u' {
			c, ok := escapes[text[i]]
			if !ok {
				c = text[i]
			}
			out = append(out, c)
			continue
		}
		unit, _ := hex4(text[i+1:])
		i += 4
		r := rune(unit)
		if utf16.IsSurrogate(r) {
			low, _ := hex4(text[i+3:])
			r = utf16.DecodeRune(r, rune(low))
			i += 6
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// AppendString appends a string as JSON.stringify writes it: it escapes only
// quotes, backslashes and control characters.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[done:i]...)
		done = i + 1
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b' || c == '\t' || c == '\n' || c == '\f' || c == '\r':
			b = append(b, '\\', "btn_fr"[c-'\b']) // these characters have the codes 8 to 13
		default:
			const digits = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(b, s[done:]...), '"')
}
