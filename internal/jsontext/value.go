// Package jsontext reads and writes small JSON texts whose form is not known
// beforehand: parameters of extension types, questions to the wasm guest. It
// decodes nothing that is not asked for, so that hostile text costs no memory,
// and it needs neither reflection nor encoding/json, which would be a fifth of
// the guest.
//
//	v, err := jsontext.Parse([]byte(`{"shape":[2,3]}`))
//	for key, member := range v.Members() { … }
//
// Layout documents have a reader of their own, for texts that [Check] let pass.
package jsontext

import (
	"iter"
	"strconv"
)

// Value is the text of one JSON value. The empty Value is that of a member
// which is not there; it is of no kind.
type Value []byte

// Kind says what a value is.
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

// Kind gives the kind.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return Absent
	}
	switch v[0] {
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

// Members gives the members of an object in their order, and none of anything
// else.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for at := v.next(1); v[at] != '}'; at = v.next(at) {
			end := v.skip(at)
			value := v.next(end)
			key := Unquote(v[at:end])
			at = v.skip(value)
			if !yield(key, v[value:at:at]) {
				return
			}
		}
	}
}

// Elements gives the elements of a list, and none of anything else.
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

// Get gives the last member with the key, and an absent value if there is none.
func (v Value) Get(key string) (found Value) {
	for k, member := range v.Members() {
		if k == key {
			found = member
		}
	}
	return found
}

// Text gives the value of a string, and false for anything else.
func (v Value) Text() (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	return Unquote(v), true
}

// Int gives the value of an integer that an int64 holds, and false for
// anything else.
func (v Value) Int() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

// next gives the start of the next value at or after at, or the closing
// bracket.
func (v Value) next(at int) int {
	for ; ; at++ {
		switch v[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return at
		}
	}
}

// skip gives the end of the value at at.
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

// skipString gives the place of the closing quote.
func (v Value) skipString(at int) int {
	for at++; v[at] != '"'; at++ {
		if v[at] == '\\' {
			at++
		}
	}
	return at
}
