package jsontext_test

import (
	"fmt"
	"strconv"
	"strings"
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

// Skip returns the text of a value, and the Reader continues after it.
func TestReaderSkip(t *testing.T) {
	r, err := jsontext.NewReader([]byte(`{"a": {"b":"}"} , "c":2}`), form)
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	if err := r.Object("an object", func(key string) error {
		found += key + "=" + string(r.Skip()) + ";"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := `a={"b":"}"};c=2;`; found != want {
		t.Errorf("got %s, want %s", found, want)
	}
}

// A Reader reads decimals exactly, and refuses decimals that thousandths do not
// hold.
func TestReaderFixed(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "1": "1000", "1.25": "1250", "0.4": "400", "-0.5": "-500", "-1.001": "-1001", "0.100": "100", "9007199254740.992": "9007199254740992",
		"0.1234":                        "form: : the number is not written with at most three decimals (line 1, byte 1)",
		"0.30000000000000004":           "form: : the number is not written with at most three decimals (line 1, byte 1)",
		" 1e-1":                         "form: : the number is not written with at most three decimals (line 1, byte 2)",
		"1E3":                           "form: : the number is not written with at most three decimals (line 1, byte 1)",
		"9007199254740.993":             "form: : the number is outside ±2^53 thousandths (line 1, byte 1)",
		"-9007199254740.993":            "form: : the number is outside ±2^53 thousandths (line 1, byte 1)",
		strings.Repeat("9", 400) + ".5": "form: : the number is outside ±2^53 thousandths (line 1, byte 1)",
		"-2.001":                        "form: : expected a share from -2 to 9007199254740.992, but found -2.001",
		`"0.5"`:                         "form: : expected a share, but found a string",
		"null":                          "form: : expected a share, but found null",
		"NaN":                           "form: : expected a value, but found 'N' (line 1, byte 1)",
	} {
		got := ""
		r, err := jsontext.NewReader([]byte(text), form)
		if err == nil {
			var n int64
			n, err = r.Fixed("a share", -2000, jsontext.MaxInteger)
			got = strconv.FormatInt(n, 10)
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40s: got  %s\nwant %s", text, got, want)
		}
	}
}

// What a Writer writes, a Reader reads again, with the fewest decimals.
func TestWriterFixed(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "0.001", 10: "0.01", 100: "0.1", 1000: "1", 1250: "1.25", -1: "-0.001", -2500: "-2.5", jsontext.MaxInteger: "9007199254740.992"} {
		var w jsontext.Writer
		w.Fixed(n)
		r, err := jsontext.NewReader(w.Text, form)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Fixed("a number", -jsontext.MaxInteger, jsontext.MaxInteger); string(w.Text) != want || got != n || err != nil {
			t.Errorf("%d is written as %s and read as %d, %v", n, w.Text, got, err)
		}
	}
}

func TestReaderBool(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", " false ": "false", "1": "form: : expected yes or no, but found a number", "null": "form: : expected yes or no, but found null",
	} {
		r, err := jsontext.NewReader([]byte(text), form)
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Bool("yes or no")
		got := strconv.FormatBool(v)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
