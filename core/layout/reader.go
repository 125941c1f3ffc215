package layout

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// reader is the second pass over a document's text, which the first has found
// to be JSON: it walks the values that the format knows and refuses all else.
type reader struct {
	text []byte
	pos  int
	path []jsontext.Step // of the value at pos
}

// newReader makes the first pass: what it refuses is no JSON.
func newReader(text []byte) (reader, error) {
	if e := jsontext.Check(text, MaxDepth); e != nil {
		return reader{}, fail(pointer(e.Path), "%s (%s)", e.What, place(text, e.Offset))
	}
	return reader{text: text}, nil
}

func (r *reader) fail(format string, args ...any) *status.Error {
	return fail(pointer(r.path), format, args...)
}

// up steps back to the value that the one at pos stood in.
func (r *reader) up() { r.path = r.path[:len(r.path)-1] }

// next gives the first byte of the value at pos.
func (r *reader) next() byte {
	for ; ; r.pos++ {
		switch c := r.text[r.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
}

// kind says in words what stands at pos.
func (r *reader) kind() string {
	switch r.next() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (r *reader) mismatch(want string) error {
	return r.fail("expected %s, but found %s", want, r.kind())
}

// object calls visit for every member; visit must read the value. Keys may not
// repeat.
func (r *reader) object(want string, visit func(key string) error) error {
	if r.next() != '{' {
		return r.mismatch(want)
	}
	r.pos++
	seen := map[string]bool{}
	for r.next() != '}' {
		start := r.pos
		key := r.raw()
		if len(key) > MaxName {
			return r.fail("key %s has %d bytes, but may have %d", quote(key), len(key), MaxName).WithHint("choose a shorter name")
		}
		r.path = append(r.path, jsontext.Step{Key: r.text[start:r.pos]})
		if seen[key] {
			return r.fail("key %s stands there twice", quote(key)).WithHint("name it once")
		}
		seen[key] = true
		if err := visit(key); err != nil {
			return err
		}
		r.up()
	}
	r.pos++
	return nil
}

// members reads an object with the given keys, of which the first required
// many must be there. Keys that are not given are refused.
func (r *reader) members(want string, required int, keys []string, visit func(key string) error) error {
	found := make([]bool, len(keys))
	err := r.object(want, func(key string) error {
		for i, k := range keys {
			if k == key {
				found[i] = true
				return visit(key)
			}
		}
		return r.unknown(key, keys)
	})
	if err != nil {
		return err
	}
	for i, k := range keys[:required] {
		if !found[i] {
			return r.fail("%s needs the key %q", want, k)
		}
	}
	return nil
}

func (r *reader) unknown(key string, keys []string) error {
	e := r.fail("%s is not a key", quote(key))
	for _, k := range keys {
		if strings.EqualFold(k, key) {
			return e.WithHint("write %q: keys are matched by case", k)
		}
	}
	return e.WithHint("the keys here are %s", strings.Join(keys, ", "))
}

// list calls visit for every element; visit must read it.
func (r *reader) list(want string, most int, visit func(i int) error) error {
	if r.next() != '[' {
		return r.mismatch(want)
	}
	r.pos++
	for i := 0; r.next() != ']'; i++ {
		if i == most {
			return r.fail("the list is longer than %d", most)
		}
		r.path = append(r.path, jsontext.Step{Number: i})
		if err := visit(i); err != nil {
			return err
		}
		r.up()
	}
	r.pos++
	return nil
}

func (r *reader) str(want string) (string, error) {
	if r.next() != '"' {
		return "", r.mismatch(want)
	}
	s := r.raw()
	if len(s) > MaxName {
		return "", r.fail("%s is %s and has %d bytes, but may have %d", want, quote(s), len(s), MaxName).WithHint("choose a shorter one")
	}
	return s, nil
}

// raw reads the string at pos.
func (r *reader) raw() string {
	r.next()
	start := r.pos
	for r.pos++; r.text[r.pos] != '"'; r.pos++ {
		if r.text[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos++
	return jsontext.Unquote(r.text[start:r.pos])
}

// null skips a null, if one stands at pos.
func (r *reader) null() bool {
	if r.next() != 'n' {
		return false
	}
	r.pos += len("null")
	return true
}

// integer reads an integer, and refuses all that JSON allows of a number beyond
// integers within ±MaxInteger.
func (r *reader) integer(want string, least, most int64) (int64, error) {
	if c := r.next(); c != '-' && (c < '0' || c > '9') {
		return 0, r.mismatch(want)
	}
	start, n, sign := r.pos, int64(0), int64(1)
	if r.text[r.pos] == '-' {
		sign = -1
		r.pos++
	}
	for ; '0' <= r.text[r.pos] && r.text[r.pos] <= '9'; r.pos++ {
		if n <= MaxInteger {
			n = 10*n + int64(r.text[r.pos]-'0')
		}
	}
	switch c := r.text[r.pos]; {
	case c == '.' || c|0x20 == 'e':
		return 0, r.fail("the number is not written as an integer (%s)", place(r.text, start))
	case n > MaxInteger:
		return 0, r.fail("the number is outside ±2^53 (%s)", place(r.text, start))
	}
	if n *= sign; n < least || n > most {
		return 0, r.fail("expected %s from %d to %d, but found %d", want, least, most, n)
	}
	return n, nil
}
