// Package jsontext is the strict JSON reader of meshfeed, and its writer. It
// needs neither reflection nor encoding/json, which would be a fifth of the
// WebAssembly module of the layout validator.
//
// A [Value] is a text of unknown form, such as the parameters of an Arrow extension type.
// Its methods decode only the members that the caller asks for, so hostile text costs no
// memory:
//
//	v, err := jsontext.Parse([]byte(`{"shape":[2,3]}`))
//	for key, member := range v.Members() { … }
//
// A [Reader] reads a document of a known form, such as a layout document, and
// refuses everything that the form does not allow. A [Writer] writes one.
package jsontext

import (
	"bytes"
	"iter"
	"strconv"
)

// Value is the text of one JSON value. An empty Value stands for a member that
// does not exist.
type Value []byte

// Kind is the kind of a value.
type Kind byte

// The kinds.
const (
	Absent Kind = iota
	Object
	List
	String
	Number
	Boolean
	Null
)

// String names the kind with its article, for messages.
func (k Kind) String() string {
	return [...]string{"nothing", "an object", "a list", "a string", "a number", "a boolean", "null"}[k]
}

// Trim returns the value without the spaces around it.
func (v Value) Trim() Value {
	v = bytes.Trim(v, " \t\r\n")
	return v[:len(v):len(v)]
}

// Kind returns the kind.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return Absent
	}
	return kindOf(v[0])
}

// kindOf returns the kind of a value from its first byte.
func kindOf(first byte) Kind {
	switch first {
	case '{':
		return Object
	case '[':
		return List
	case '"':
		return String
	case 't', 'f':
		return Boolean
	case 'n':
		return Null
	}
	return Number
}

// Members yields the members of an object in order. Other values have none.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for key, value := range v.Quoted() {
			if !yield(unquote(key), value) {
				return
			}
		}
	}
}

// Quoted yields the members of an object as Members does, with their keys as strings in the text, so
// that it allocates nothing.
func (v Value) Quoted() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for at := v.next(1); v[at] != '}'; at = v.next(at) {
			end := v.skip(at)
			value := v.next(end)
			key := v[at:end:end]
			at = v.skip(value)
			if !yield(key, v[value:at:at]) {
				return
			}
		}
	}
}

// Elements yields the elements of a list. Other values have none.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != List {
			return
		}
		for at := v.next(1); v[at] != ']'; at = v.next(at) {
			start := at
			at = v.skip(at)
			if !yield(v[start:at:at]) {
				return
			}
		}
	}
}

// Get returns the last member with the key, or an absent value.
func (v Value) Get(key string) (found Value) {
	for k, member := range v.Members() {
		if k == key {
			found = member
		}
	}
	return found
}

// Text returns the value of a string. ok is false for other values.
func (v Value) Text() (text string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	return unquote(v), true
}

// AppendText appends the value of a string to b.
func (v Value) AppendText(b []byte) []byte { return appendUnquoted(b, v) }

// Int returns the value of an integer that an int64 holds. ok is false for
// other values.
func (v Value) Int() (n int64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

// next returns the offset of the first value that begins at offset at or later, or
// of the closing bracket.
func (v Value) next(at int) int {
	for ; ; at++ {
		switch v[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return at
		}
	}
}

// skip returns the offset after the value that begins at offset at.
func (v Value) skip(at int) int {
	depth := 0
	for ; at < len(v); at++ {
		switch v[at] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth < 0 {
				return at
			}
		case '"':
			at = v.skipString(at)
		case ' ', '\t', '\r', '\n', ',', ':':
			if depth == 0 {
				return at
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return at + 1
		}
	}
	return at
}

// skipString returns the offset of the closing quote.
func (v Value) skipString(at int) int {
	for at++; v[at] != '"'; at++ {
		if v[at] == '\\' {
			at++
		}
	}
	return at
}
