// Package options reads the JSON objects that cold calls take.
//
// It is as strict as the layout documents are: keys are matched by case, a key
// that is unknown or stands there twice is refused, and so is a value of
// another type. Every error says where, as a JSON Pointer.
//
//	o := options.Parse("dataset", text)
//	paths := o.Strings("paths")
//	mode := o.String("io", "auto")
//	if err := o.Err(); err != nil { ... }
package options

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxBytes bounds the text.
const MaxBytes = 64 << 20

// Object is one JSON object. Its getters mark their key as known and give the
// default where the key is missing; the first fault is kept for Err.
type Object struct {
	op     string
	path   string
	keys   []string // in the text's order
	values map[string]json.RawMessage
	known  []string
	err    error
}

// Parse reads the text of an object. Empty text is an empty object. Op names
// the call in errors.
func Parse(op string, text []byte) *Object { return parse(op, "", text) }

func parse(op, path string, text []byte) *Object {
	o := &Object{op: op, path: path, values: map[string]json.RawMessage{}}
	if len(text) > MaxBytes {
		o.fail("", "the options have %d bytes, more than %d", len(text), MaxBytes)
	} else if len(bytes.TrimSpace(text)) > 0 {
		o.read(json.NewDecoder(bytes.NewReader(text)))
	}
	return o
}

func (o *Object) read(d *json.Decoder) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		o.fail("", "expected a JSON object, but found %s", found(t, err))
		return
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			o.fail("", "the options are not JSON: %v", err)
			return
		}
		key := t.(string) // the decoder accepts nothing else here
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			o.fail(key, "the value is not JSON: %v", err)
			return
		}
		if _, twice := o.values[key]; twice {
			o.fail(key, "key %q stands there twice", key)
			return
		}
		o.keys, o.values[key] = append(o.keys, key), value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		o.fail("", "the object is not closed")
		return
	}
	if t, err := d.Token(); err != io.EOF {
		o.fail("", "expected nothing after the object, but found %s", found(t, err))
	}
}

func found(t json.Token, err error) string {
	switch {
	case err == io.EOF:
		return "nothing"
	case err != nil:
		return err.Error()
	case t == json.Delim('['):
		return "a list"
	}
	text, _ := json.Marshal(t)
	return string(text)
}

func (o *Object) fail(key, format string, args ...any) {
	if o.err != nil {
		return
	}
	path := o.path
	if key != "" {
		path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	}
	prefix := "options"
	if path != "" {
		prefix += " " + path
	}
	e := status.Errorf(status.InvalidArgument, o.op, "%s: "+format, append([]any{prefix}, args...)...)
	o.err = e.With("path", path)
}

// Refuse notes that a value is not acceptable, for Err to give.
func (o *Object) Refuse(key, format string, args ...any) { o.fail(key, format, args...) }

// Err refuses the first unknown key, or else gives the first fault of the text.
// A key that is written wrongly explains why another one is missing.
func (o *Object) Err() error {
	for _, key := range o.keys {
		if !slices.Contains(o.known, key) {
			o.err = nil
			o.fail(key, "%q is not an option", key)
			o.err.(*status.Error).WithHint("the options here are %s", strings.Join(o.known, ", "))
			break
		}
	}
	return o.err
}

// Keys lists the keys in the text's order, and makes all of them known.
func (o *Object) Keys() []string {
	o.known = append(o.known, o.keys...)
	return o.keys
}

// Raw gives the text of a value, or nil where the key is missing or null.
func (o *Object) Raw(key string) []byte {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	if value, ok := o.values[key]; ok && string(value) != "null" {
		return value
	}
	return nil
}

// Has says whether there is a value that is not null.
func (o *Object) Has(key string) bool { return o.Raw(key) != nil }

// get decodes a value into to, whose type want describes.
func (o *Object) get(key, want string, to any) {
	raw := o.Raw(key)
	if raw != nil && json.Unmarshal(raw, to) != nil {
		o.fail(key, "expected %s, but found %s", want, shorten(raw))
	}
}

func shorten(raw []byte) string {
	if len(raw) > 40 {
		return strings.ToValidUTF8(string(raw[:40]), "") + "…"
	}
	return string(raw)
}

// Bool gives a boolean.
func (o *Object) Bool(key string, missing bool) bool {
	o.get(key, "true or false", &missing)
	return missing
}

// Int gives an integer.
func (o *Object) Int(key string, missing int64) int64 {
	o.get(key, "an integer", &missing)
	return missing
}

// IntFrom gives an integer of at least least that an int32 holds.
func (o *Object) IntFrom(key string, least, missing int) int {
	n := o.Int(key, int64(missing))
	if n < int64(least) || n > 1<<31-1 {
		o.fail(key, "expected an integer from %d to %d, but found %d", least, 1<<31-1, n)
		return missing
	}
	return int(n)
}

// String gives a text.
func (o *Object) String(key, missing string) string {
	o.get(key, "a text", &missing)
	return missing
}

// Strings gives a list of texts.
func (o *Object) Strings(key string) []string {
	var list []string
	o.get(key, "a list of texts", &list)
	return list
}

// Ints gives a list of integers, which fit into 32 bits.
func (o *Object) Ints(key string) []int {
	var list []int32
	o.get(key, "a list of integers", &list)
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = int(n)
	}
	return out
}

// Object gives an object in the object. Its faults are its own, until Join.
func (o *Object) Object(key string) *Object {
	return parse(o.op, o.path+"/"+key, o.Raw(key))
}

// Join makes the faults of an object in the object its own.
func (o *Object) Join(inner *Object) {
	if err := inner.Err(); o.err == nil {
		o.err = err
	}
}

// Scalar gives a number or boolean: a bool, int64, uint64, float64, or
// complex128 from a list of two numbers. Floats without a JSON form are texts:
// "nan", "inf", "-inf".
func (o *Object) Scalar(key string) any {
	raw := o.Raw(key)
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return b
	}
	if f, ok := float(raw); ok {
		return f
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) == nil && len(parts) == 2 {
		re, ok1 := float(parts[0])
		im, ok2 := float(parts[1])
		if ok1 && ok2 {
			return complex(re, im)
		}
	}
	o.fail(key, "expected a number, a boolean or a list of two numbers, but found %s", shorten(raw))
	return nil
}

func float(raw []byte) (float64, bool) {
	var f float64
	if json.Unmarshal(raw, &f) == nil {
		return f, true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || !slices.Contains([]string{"nan", "inf", "-inf"}, s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}
