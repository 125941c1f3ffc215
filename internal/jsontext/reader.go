package jsontext

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// MaxInteger is the largest integer that a Reader accepts; the smallest is its
// negative. Every program that reads JSON numbers as float64 reads them exactly.
const MaxInteger = 1 << 53

// Form describes a kind of document.
type Form struct {
	MaxDepth  int // depth of nested objects and lists
	MaxString int // bytes of a key or string

	// Fail makes the error of a document. The pointer is the JSON Pointer of
	// the value in question.
	Fail func(pointer, message string) *status.Error
}

// Reader reads a document of a known form, value by value. It is strict: text
// that is not JSON in UTF-8, keys that repeat, are unknown or differ in case,
// numbers that are not integers within ±2^53, and long strings are errors.
//
// Every method that reads a value takes a description of what is wanted, such
// as "a list of axes". The error of another value shows it.
type Reader struct {
	form Form
	text []byte
	pos  int
	path []Step // from the root to the value at pos
}

// NewReader checks that the whole text is JSON, so that the methods of the
// Reader need not.
func NewReader(text []byte, form Form) (*Reader, error) {
	if e := Check(text, form.MaxDepth); e != nil {
		return nil, form.Fail(pointer(e.Path, form.MaxString), fmt.Sprintf("%s (%s)", e.What, position(text, e.Offset)))
	}
	return &Reader{form: form, text: text}, nil
}

// Fail makes an error about the value that is being read.
func (r *Reader) Fail(format string, args ...any) *status.Error {
	return r.FailAt(r.Pointer(), format, args...)
}

// FailAt makes an error about the value at a JSON Pointer.
func (r *Reader) FailAt(pointer, format string, args ...any) *status.Error {
	return r.form.Fail(pointer, fmt.Sprintf(format, args...))
}

// At moves an error to the value that is being read.
func (r *Reader) At(err error) error {
	if e, ok := errors.AsType[*status.Error](err); ok {
		return r.Fail("%s", e.Msg).WithHint("%s", e.Hint)
	}
	return err
}

// Pointer returns the JSON Pointer of the value that is being read.
func (r *Reader) Pointer() string { return pointer(r.path, r.form.MaxString) }

// Kind returns the kind of the next value.
func (r *Reader) Kind() Kind { return kindOf(r.next()) }

// next skips to the next value or closing bracket, and returns its first byte.
func (r *Reader) next() byte {
	r.pos = Value(r.text).next(r.pos)
	return r.text[r.pos]
}

func (r *Reader) mismatch(want string) error {
	return r.Fail("expected %s, but found %s", want, r.Kind())
}

// Object calls visit for every member; visit must read the value. Keys must
// not repeat.
func (r *Reader) Object(want string, visit func(key string) error) error {
	if r.next() != '{' {
		return r.mismatch(want)
	}
	r.pos++
	seen := map[string]bool{}
	for r.next() != '}' {
		start := r.pos
		key := r.unquote()
		if len(key) > r.form.MaxString {
			return r.Fail("key %s has %d bytes, but may have %d", wording.Quote(key), len(key), r.form.MaxString).WithHint("choose a shorter name")
		}
		r.path = append(r.path, Step{Key: r.text[start:r.pos]})
		if seen[key] {
			return r.Fail("key %s occurs twice", wording.Quote(key)).WithHint("name it once")
		}
		seen[key] = true
		if err := visit(key); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	r.pos++
	return nil
}

// Members reads an object with the given keys. The first required keys must be
// there, and no other key may be. A string or a list in its place is an error that
// names the keys.
func (r *Reader) Members(want string, required int, keys []string, visit func(key string) error) error {
	if k := r.Kind(); len(r.path) > 0 && (k == String || k == List) {
		return r.Fail("expected %s, but found %s", want, k).WithHint("%s has the keys %s", want, strings.Join(keys, ", "))
	}
	found := make([]bool, len(keys))
	err := r.Object(want, func(key string) error {
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
			return r.Fail("%s needs the key %q", want, k)
		}
	}
	return nil
}

func (r *Reader) unknown(key string, keys []string) error {
	e := r.Fail("%s is not a key", wording.Quote(key))
	for _, k := range keys {
		if strings.EqualFold(k, key) {
			return e.WithHint("write %q: keys are matched by case", k)
		}
	}
	if near := wording.Nearest(key, keys); near != "" {
		return e.WithHint("did you mean %q? The keys here are %s", near, strings.Join(keys, ", "))
	}
	return e.WithHint("the keys here are %s", strings.Join(keys, ", "))
}

// List calls visit for every element; visit must read it. It accepts at most
// most elements.
func (r *Reader) List(want string, most int, visit func(i int) error) error {
	if r.next() != '[' {
		return r.mismatch(want)
	}
	r.pos++
	for i := 0; r.next() != ']'; i++ {
		if i == most {
			return r.Fail("the list is longer than %d", most)
		}
		r.path = append(r.path, Step{Number: i})
		if err := visit(i); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	r.pos++
	return nil
}

// Tuple reads a list of exactly n elements.
func (r *Reader) Tuple(want string, n int, visit func(i int) error) error {
	count := 0
	err := r.List(want, n+1, func(i int) error {
		if count = i + 1; count > n {
			return r.Fail("expected %s, but the list has more than %d elements", want, n)
		}
		return visit(i)
	})
	if err == nil && count != n {
		return r.Fail("expected %s, but the list has %d", want, count)
	}
	return err
}

// Text reads a string.
func (r *Reader) Text(want string) (string, error) {
	if r.next() != '"' {
		return "", r.mismatch(want)
	}
	s := r.unquote()
	if len(s) > r.form.MaxString {
		return "", r.Fail("%s is %s and has %d bytes, but may have %d", want, wording.Quote(s), len(s), r.form.MaxString).WithHint("choose a shorter one")
	}
	return s, nil
}

// Word reads a string that is not empty.
func (r *Reader) Word(want string) (string, error) {
	s, err := r.Text(want)
	if err == nil && s == "" {
		return "", r.Fail("expected %s, but found an empty string", want)
	}
	return s, err
}

// Skip skips the next value of any kind, and returns its text.
func (r *Reader) Skip() Value {
	r.next()
	start := r.pos
	r.pos = Value(r.text).skip(start)
	return Value(r.text[start:r.pos])
}

// unquote reads the string at pos.
func (r *Reader) unquote() string {
	start := r.pos
	r.pos = Value(r.text).skipString(start) + 1
	return unquote(r.text[start:r.pos])
}

// Null skips the next value if it is null, and reports whether it was.
func (r *Reader) Null() bool {
	if r.next() != 'n' {
		return false
	}
	r.pos += len("null")
	return true
}

// Integer reads an integer from least to most, within ±MaxInteger. It refuses
// other spellings of an integer, such as 1.0 and 1e3.
func (r *Reader) Integer(want string, least, most int64) (int64, error) {
	if r.Kind() != Number {
		return 0, r.mismatch(want)
	}
	start := r.pos
	r.pos = Value(r.text).skip(start)
	digits := r.text[start:r.pos]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	switch {
	case bytes.ContainsAny(digits, ".eE"):
		return 0, r.Fail("the number is not written as an integer (%s)", position(r.text, start))
	case err != nil || n < -MaxInteger || n > MaxInteger:
		return 0, r.Fail("the number is outside ±2^53 (%s)", position(r.text, start))
	case n < least || n > most:
		return 0, r.Fail("expected %s from %d to %d, but found %d", want, least, most, n)
	}
	return n, nil
}

// Fixed reads a number with at most three decimals, such as 1.25, as an integer of
// thousandths, without rounding. The bounds are thousandths too. It refuses
// exponents, such as 1e-1.
func (r *Reader) Fixed(want string, least, most int64) (int64, error) {
	if r.Kind() != Number {
		return 0, r.mismatch(want)
	}
	start := r.pos
	r.pos = Value(r.text).skip(start)
	digits := r.text[start:r.pos]
	whole, decimals, _ := bytes.Cut(digits, []byte("."))
	if bytes.ContainsAny(digits, "eE") || len(decimals) > 3 {
		return 0, r.Fail("the number is not written with at most three decimals (%s)", position(r.text, start))
	}
	thousandths := string(whole) + string(decimals) + "000"[len(decimals):]
	n, err := strconv.ParseInt(thousandths, 10, 64)
	switch {
	case err != nil || n < -MaxInteger || n > MaxInteger:
		return 0, r.Fail("the number is outside ±2^53 thousandths (%s)", position(r.text, start))
	case n < least || n > most:
		return 0, r.Fail("expected %s from %s to %s, but found %s", want, AppendFixed(nil, least), AppendFixed(nil, most), AppendFixed(nil, n))
	}
	return n, nil
}

// Bool reads true or false.
func (r *Reader) Bool(want string) (bool, error) {
	if r.Kind() != Boolean {
		return false, r.mismatch(want)
	}
	start := r.pos
	r.pos = Value(r.text).skip(start)
	return r.text[start] == 't', nil
}

// Int is Integer for an int.
func (r *Reader) Int(want string, least, most int64) (int, error) {
	n, err := r.Integer(want, least, most)
	return int(n), err
}
