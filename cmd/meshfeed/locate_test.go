package main

import (
	"testing"
)

func TestLocate(t *testing.T) {
	const text = " {\"mesh\": {\"axes\": [[\"dätä\", 4],\n  [\"model\", 2]]},\n\t\"arrays\" : {\"a/b~c\": {\"shape\": [1,2 , 3]}, \"x\": {}}}"
	for _, c := range []struct {
		pointer      string
		line, column int
	}{
		{"", 1, 2},
		{"/mesh", 1, 11},
		{"/mesh/axes/0", 1, 21},
		{"/mesh/axes/0/1", 1, 30},
		{"/mesh/axes/1/0", 2, 4},
		{"/arrays/a~1b~0c/shape/2", 3, 40},
		{"/arrays/x", 3, 50},
		{"/arrays/x/spec", 3, 50},   // a key that is not there
		{"/batch/size", 1, 2},       // likewise
		{"/mesh/axes/7", 1, 20},     // beyond the list
		{"/mesh/axes/0/1/2", 1, 30}, // below a number
	} {
		if line, column := locate([]byte(text), c.pointer); line != c.line || column != c.column {
			t.Errorf("%q: line %d, column %d, not %d, %d", c.pointer, line, column, c.line, c.column)
		}
	}
	for _, broken := range []string{"", "   ", "{", `{"a"`, `{"a":`, `{"a":1`, `[1,`, "nope"} {
		if line, column := locate([]byte(broken), "/a/b"); line != 1 || column < 1 {
			t.Errorf("%q: line %d, column %d", broken, line, column)
		}
	}
}
