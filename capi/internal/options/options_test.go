package options

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

func TestValues(t *testing.T) {
	o := Parse("test", []byte(` {"i": -3, "b": true, "s": "é", "list": ["a", "b"], "shape": [2, 3], "none": null, "sub": {"x": 1}} `))
	got := []any{
		o.Int("i", 0), o.Bool("b", false), o.String("s", ""), o.Strings("list"), o.Ints("shape"),
		o.Has("none"), o.Int("none", 7), o.IntFrom("missing", 1, 2), o.Object("sub").Int("x", 0),
	}
	want := []any{int64(-3), true, "é", []string{"a", "b"}, []int{2, 3}, false, int64(7), 2, int64(1)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if err := o.Err(); err != nil {
		t.Error(err)
	}
	if err := Parse("test", nil).Err(); err != nil {
		t.Errorf("no text at all: %v", err)
	}
}

func TestScalars(t *testing.T) {
	o := Parse("test", []byte(`{"a": 1, "b": 18446744073709551615, "c": -0.5, "d": false, "e": "-inf", "f": [1, "inf"], "g": "nan"}`))
	var got []any
	for _, key := range o.Keys()[:6] {
		got = append(got, o.Scalar(key))
	}
	want := []any{int64(1), uint64(math.MaxUint64), -0.5, false, math.Inf(-1), complex(1, math.Inf(1))}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if f, ok := o.Scalar("g").(float64); !ok || !math.IsNaN(f) {
		t.Errorf("nan is %v", o.Scalar("g"))
	}
	if err := o.Err(); err != nil {
		t.Error(err)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`[`, `test: options: expected a JSON object, but found a list`},
		{`3`, `test: options: expected a JSON object, but found 3`},
		{`{"i": 1`, `test: options: the object is not closed`},
		{`{"i": }`, `test: options /i: the value is not JSON: invalid character '}' looking for beginning of value`},
		{`{"i": 1} x`, `test: options: expected nothing after the object, but found invalid character 'x' looking for beginning of value`},
		{`{"i": 1, "i": 2}`, `test: options /i: key "i" stands there twice`},
		{`{"i": "1"}`, `test: options /i: expected an integer, but found "1"`},
		{`{"i": 1.5}`, `test: options /i: expected an integer, but found 1.5`},
		{`{"i": 0}`, `test: options /i: expected an integer from 1 to 2147483647, but found 0`},
		{`{"i": 2147483648}`, `test: options /i: expected an integer from 1 to 2147483647, but found 2147483648`},
		{`{"I": 1}`, `test: options /I: "I" is not an option; the options here are i, v`},
		{`{"a/b~": 1}`, `test: options /a~1b~0: "a/b~" is not an option; the options here are i, v`},
		{`{"v": [1, 2, 3]}`, `test: options /v: expected a number, a boolean or a list of two numbers, but found [1, 2, 3]`},
		{`{"v": "one"}`, `test: options /v: expected a number, a boolean or a list of two numbers, but found "one"`},
		{`{"v": "` + strings.Repeat("ä", 30) + `"}`, `test: options /v: expected a number, a boolean or a list of two numbers, but found "` + strings.Repeat("ä", 19) + `…`},
	} {
		o := Parse("test", []byte(c.text))
		o.IntFrom("i", 1, 1)
		if o.Has("v") {
			o.Scalar("v")
		}
		o.Raw("v")
		err := o.Err()
		if err == nil || err.Error() != c.want || status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s\ngot  %v\nwant %v", c.text, err, c.want)
		}
	}
	sub := Parse("test", []byte(`{"shapes": {"x": 1}}`)).Object("shapes")
	sub.Ints("x")
	if err := sub.Err(); err == nil || err.Error() != `test: options /shapes/x: expected a list of integers, but found 1` {
		t.Errorf("got %v", err)
	}
}
