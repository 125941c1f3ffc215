package jsontext_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// form is a small kind of document: {"name": …, "sizes": […]}.
var form = jsontext.Form{MaxDepth: 2, MaxString: 8, Fail: func(pointer, message string) *status.Error {
	return status.Errorf(status.InvalidArgument, "form", "%s: %s", pointer, message)
}}

func read(text string) (name string, sizes []int, err error) {
	r, err := jsontext.NewReader([]byte(text), form)
	if err != nil {
		return "", nil, err
	}
	err = r.Members("a form", 1, []string{"name", "sizes"}, func(key string) (err error) {
		if key == "name" {
			name, err = r.Word("a name")
			return err
		}
		return r.List("a list of sizes", 3, func(int) error {
			n, err := r.Int("a size", 1, 100)
			sizes = append(sizes, n)
			return err
		})
	})
	return name, sizes, err
}

func ExampleReader() {
	fmt.Println(read(`{"sizes": [1, 2], "name": "a"}`))
	_, _, err := read(`{"name": "a", "sizes": [1, 0]}`)
	fmt.Println(err)
	// Output:
	// a [1 2] <nil>
	// form: /sizes/1: expected a size from 1 to 100, but found 0
}

func TestReaderRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"a"`:                    "form: : expected ',' or '}', but the text ends (line 1, byte 12)",
		`[]`:                             "form: : expected a form, but found a list",
		`{}`:                             `form: : a form needs the key "name"`,
		`{"name":"a","name":"a"}`:        `form: /name: key "name" occurs twice; name it once`,
		`{"Name":"a"}`:                   `form: /Name: "Name" is not a key; write "name": keys are matched by case`,
		`{"a/b":1}`:                      `form: /a~1b: "a/b" is not a key; the keys here are name, sizes`,
		`{"name":""}`:                    "form: /name: expected a name, but found an empty string",
		`{"name":"123456789"}`:           `form: /name: a name is "123456789" and has 9 bytes, but may have 8; choose a shorter one`,
		`{"123456789":1}`:                `form: : key "123456789" has 9 bytes, but may have 8; choose a shorter name`,
		`{"name":"a","sizes":[1,2,3,4]}`: "form: /sizes: the list is longer than 3",
		`{"name":"a","sizes":[1.0]}`:     "form: /sizes/0: the number is not written as an integer (line 1, byte 22)",
		"{\"name\":\"a\",\n\"sizes\":[9007199254740993]}": "form: /sizes/0: the number is outside ±2^53 (line 2, byte 10)",
		`{"name":"a","sizes":[[]]}`:                       "form: /sizes/0: values are nested deeper than 2 (line 1, byte 22)",
	} {
		if _, _, err := read(text); err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", text, err, want)
		}
	}
}

// A Reader can read a document that is a single number.
func TestReaderOfANumber(t *testing.T) {
	r, err := jsontext.NewReader([]byte("-12"), form)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Integer("a number", -20, 20); n != -12 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
}
