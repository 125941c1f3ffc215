package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// locate gives line and column, from 1 and in characters, of the value that a
// JSON Pointer names. If the text has no such value, as where a key is missing,
// the nearest value round it is meant.
func locate(text []byte, pointer string) (line, column int) {
	at := start(text, 0)
	for _, step := range steps(pointer) {
		inside, ok := child(text[at:], step)
		if !ok {
			break
		}
		at += inside
	}
	before := text[:at]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// steps gives the keys and numbers of a JSON Pointer.
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	list := strings.Split(pointer[1:], "/")
	for i, s := range list {
		list[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	return list
}

// child finds a member of an object or an element of a list at the beginning of
// the text, and gives its offset.
func child(text []byte, step string) (offset int, ok bool) {
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
		if name == step {
			return start(text, int(dec.InputOffset())), true
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return 0, false
		}
	}
	return 0, false
}

// start gives the offset of the next value: what stands before it is passed over.
func start(text []byte, at int) int {
	for at < len(text) && strings.IndexByte(" \t\r\n,:", text[at]) >= 0 {
		at++
	}
	return at
}
