package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// locate returns the line and column, from 1 and in characters, of the value
// that a JSON Pointer names. If the text has no such value, for example because
// a key is missing, it returns the position of the nearest enclosing value.
func locate(text []byte, pointer string) (line, column int) {
	at := start(text, 0)
	for _, token := range tokens(pointer) {
		inside, ok := child(text[at:], token)
		if !ok {
			break
		}
		at += inside
	}
	before := text[:at]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// tokens returns the unescaped reference tokens of a JSON Pointer (RFC 6901).
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	list := strings.Split(pointer[1:], "/")
	for i, s := range list {
		list[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	return list
}

// child returns the offset of one member of the object or list that the text begins
// with. The token is the key of the member, or its number in the list.
func child(text []byte, token string) (offset int, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	opened, err := dec.Token()
	if err != nil || opened != json.Delim('{') && opened != json.Delim('[') {
		return 0, false
	}
	for i := 0; dec.More(); i++ {
		name := strconv.Itoa(i)
		if opened == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return 0, false
			}
			name, _ = key.(string)
		}
		if name == token {
			return start(text, int(dec.InputOffset())), true
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return 0, false
		}
	}
	return 0, false
}

// start skips white space and separators, and returns the offset of the next
// value.
func start(text []byte, at int) int {
	for at < len(text) && strings.IndexByte(" \t\r\n,:", text[at]) >= 0 {
		at++
	}
	return at
}
