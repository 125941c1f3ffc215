package jsontext_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// decode decodes a value as encoding/json does.
func decode(v jsontext.Value) any {
	switch v.Kind() {
	case jsontext.Object:
		m := map[string]any{}
		for key, member := range v.Members() {
			m[key] = decode(member)
		}
		return m
	case jsontext.List:
		list := []any{}
		for e := range v.Elements() {
			list = append(list, decode(e))
		}
		return list
	case jsontext.String:
		s, _ := v.Text()
		return s
	case jsontext.Number:
		return json.Number(v)
	case jsontext.Boolean:
		return string(v) == "true"
	}
	return nil
}

func reference(text []byte) (any, bool) {
	if !json.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}

func compare(t *testing.T, text string) {
	t.Helper()
	v, err := jsontext.Parse([]byte(text))
	want, ok := reference([]byte(text))
	switch {
	case err == nil && !ok:
		t.Errorf("%.100q was accepted, but is not JSON", text)
	case err == nil && !reflect.DeepEqual(decode(v), want):
		t.Errorf("%.100q was read as %v, want %v", text, decode(v), want)
	case err != nil && ok && !stricter(err):
		t.Errorf("%.100q was refused: %v", text, err)
	}
}

// stricter reports whether encoding/json accepts what the error is about: it
// repairs broken UTF-8, and allows deeper nesting.
func stricter(err error) bool {
	for _, what := range []string{"not UTF-8", "surrogate pair", "nested deeper"} {
		if strings.Contains(err.Error(), what) {
			return true
		}
	}
	return false
}

var texts = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `1.5e-3`, ` true `, `null`, `[1,[2,{"a":[]}],"x"]`,
	` { "a" : 1 , "b\n\u00e9\ud83d\ude00" : [ 1 , 2 ] , "a" : { } } `, `"\"\\\/\b\f\n\r\t"`, `[[],[]]`, `{"a":1}`, `[1,2]`, `[[null],[true]]`, `{"a":{"b":-1e9}}`, `[{},{"":""}]`,
	``, `{`, `[1,]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `01`, `1.`, `.5`, `1e`, `+1`, `-`, `tru`, `nul`, `"a`, `"\x"`, `"\u12"`,
	`"\ud800"`, `"\udc00\ud800"`, "\"\xff\"", "\"\n\"", "\"\x1f\"", "\"\x20\"", `1 2`, `[1}`, `{"a":1]`, `"\`, `["a\\","]"]`, `{"a\"}":"}"}`,
}

func TestEqualsEncodingJSON(t *testing.T) {
	for _, text := range texts {
		compare(t, text)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(compare)
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                       "expected a value, but the text ends (at byte 0)",
		`[1 2]`:                  "expected ',' or ']', but found '2' (at byte 3)",
		`{"a" 1}`:                "expected ':', but found '1' (at byte 5)",
		`{1:2}`:                  "expected a key in quotes, but found '1' (at byte 1)",
		`1x`:                     "the document ends here, but more text follows (at byte 1)",
		`-x`:                     "expected a digit, but found 'x' (at byte 1)",
		`"\u12_4"`:               `\u needs four hexadecimal digits (at byte 1)`,
		`"\ud800\u0041"`:         `\ud800 is half of a surrogate pair, which is not UTF-8 (at byte 1)`,
		"\"\x01\"":               "a string may not contain the control character 0x01 (at byte 1)",
		"\"\xff\"":               "the byte 0xff is not UTF-8 (at byte 1)",
		"[\xff]":                 "expected a value, but found the byte 0xff, which is not UTF-8 (at byte 1)",
		`[1,-01]`:                "a number may not begin with 0 (at byte 4)",
		`"a`:                     "a string has no end (at byte 2)",
		strings.Repeat("[", 300): "values are nested deeper than 256 (at byte 256)",
	} {
		if _, err := jsontext.Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", text, err, want)
		}
	}
}

// The path of an error leads to the value that is wrong. For a wrong key, or for text
// between two values, it leads to the object or list.
func TestPaths(t *testing.T) {
	for text, want := range map[string]string{
		``:                    "",
		`[0,{"a":[0,0,tru]}]`: `1 "a" 2`,
		`{"\u0061" 1}`:        `"\u0061"`,
		`{"a":1,b}`:           "",
		`{"a":{"b":1,"c\x"}}`: `"a"`,
		`[[1 2]]`:             "0",
		`[1] 2`:               "",
		`[[[[0]]]]`:           "0 0 0",
	} {
		err := jsontext.Check([]byte(text), 3)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		var path []string
		for _, s := range err.Path {
			if s.Key == nil {
				path = append(path, strconv.Itoa(s.Number))
			} else {
				path = append(path, string(s.Key))
			}
		}
		if got := strings.Join(path, " "); got != want {
			t.Errorf("%s: %v at %s, want %s", text, err, got, want)
		}
	}
	if err := jsontext.Check([]byte(`[[[0]]]`), 3); err != nil {
		t.Errorf("three lists are not deeper than 3: %v", err)
	}
}

func TestValuesOfOtherKinds(t *testing.T) {
	v, err := jsontext.Parse([]byte(`{"a":1,"a":2,"s":"x","f":1.0,"l":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := v.Get("a").Int(); n != 2 || !ok {
		t.Errorf("a is %d, %v", n, ok)
	}
	if absent := v.Get("b"); absent.Kind() != jsontext.Absent {
		t.Errorf("b is there: %s", absent)
	}
	if _, ok := v.Get("s").Int(); ok {
		t.Error("a string is an integer")
	}
	if _, ok := v.Get("f").Int(); ok {
		t.Error("1.0 is an integer")
	}
	if _, ok := v.Get("a").Text(); ok {
		t.Error("a number is a string")
	}
	for range v.Elements() {
		t.Error("an object has elements")
	}
	for range v.Get("l").Members() {
		t.Error("a list has members")
	}
	for key := range v.Members() {
		if key != "a" {
			t.Errorf("got %s after a break", key)
		}
		break
	}
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{"a\"\\/\b\t\n\f\r\x01é<": `"a\"\\/\b\t\n\f\r\u0001é<"`, "": `""`} {
		if got := string(jsontext.AppendString(nil, in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	text := []byte(strings.Repeat(`[{"a":"x"},`, 100) + "0" + strings.Repeat("]", 100))
	if n := testing.AllocsPerRun(10, func() { _, _ = jsontext.Parse(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
