package jsonl

import (
	"bytes"
	"context"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// maxKeys bounds the columns, because each takes memory for every record.
const maxKeys = 2048

// kind is what values of a key are. A kind of numbers holds the values of the kinds of numbers before it.
type kind byte

const (
	nothing kind = iota // null, or no value
	boolean
	integer // that an int64 holds
	wide    // other integers
	float
	text
	list
	object
	mixed // different kinds
)

// String names the values, for messages.
func (k kind) String() string {
	return [...]string{"nulls", "booleans", "integers of 64 bits", "integers of more than 64 bits", "numbers", "strings", "lists", "objects", "values of several types"}[k]
}

// form is the kind of values, and of the elements of lists.
type form struct {
	kind kind
	item *form // nil unless lists are among the values
}

// key is a column.
type key struct {
	form
	name    string
	records int64 // of the sample that have a value
	last    int64 // the number of the last of them

	// unread reports that values are not read: the key is not chosen, or the column cannot be a field.
	// Lists in which the sample has no value are read, because other files may have the field.
	unread bool
}

// sample sets the keys from the first unit. A key without any value there is no column.
func (c *file) sample(ctx context.Context) error {
	return c.read(ctx, 0, func() {}, func(record int64, object jsontext.Value) error {
		for name, value := range object.Members() {
			if value.Kind() == jsontext.Null {
				continue
			}
			number, known := c.places[name]
			if !known {
				if number = len(c.keys); number == maxKeys {
					return status.Errorf(status.Unsupported, "arrowio", "the objects have more than %d keys", maxKeys).
						WithHint("store values under varying keys as lists")
				}
				c.places[name] = number
				c.keys = append(c.keys, key{name: name, last: -1})
			}
			k := &c.keys[number]
			if k.last == record {
				return twice(name)
			}
			k.records, k.last = k.records+1, record
			k.add(value)
		}
		return nil
	})
}

// add makes the form hold a value too.
func (f *form) add(v jsontext.Value) {
	f.kind = f.kind.with(kindOf(v))
	for element := range v.Elements() {
		if f.item == nil {
			f.item = &form{}
		}
		f.item.add(element)
	}
}

// with returns the kind for the values of two kinds.
func (k kind) with(other kind) kind {
	numbers := min(k, other) >= integer && max(k, other) <= float
	switch {
	case k == other || numbers || min(k, other) == nothing:
		return max(k, other)
	}
	return mixed
}

func kindOf(v jsontext.Value) kind {
	switch v.Kind() {
	case jsontext.Boolean:
		return boolean
	case jsontext.String:
		return text
	case jsontext.List:
		return list
	case jsontext.Object:
		return object
	case jsontext.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return float
		}
		if _, fits := v.Int(); fits {
			return integer
		}
		return wide
	}
	return nothing
}

// column describes the values as a column of Arrow. Kinds without a type of arrays get a type that is
// refused.
func (k *key) column() arrowmeta.Field { return k.field(k.name) }

func (f *form) field(name string) arrowmeta.Field {
	out := arrowmeta.Field{Name: name, Nullable: true}
	switch f.kind {
	case nothing:
		out.Type.Kind = arrowmeta.Null
	case boolean:
		out.Type = arrowmeta.Type{Kind: arrowmeta.Bool, BitWidth: 1}
	case integer:
		out.Type = arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 64, Signed: true}
	case wide:
		out.Type = arrowmeta.Type{Kind: arrowmeta.Decimal, BitWidth: 256, Precision: 76}
	case float:
		out.Type = arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 64}
	case text:
		out.Type.Kind = arrowmeta.LargeString
	case list:
		item := f.item
		if item == nil {
			item = &form{}
		}
		out.Type = arrowmeta.Type{Kind: arrowmeta.LargeList, Children: []arrowmeta.Field{item.field("item")}}
	case object:
		out.Type.Kind = arrowmeta.Struct
	case mixed:
		out.Type.Kind = arrowmeta.Union
	}
	return out
}

// The errors of a line say what the caller can do.
const otherTypes = "write the file again with one type for each key, or choose the other columns (columns=; Go: Columns)"

// misfit returns the error for a value that the sample gives another type.
func misfit(name string, want kind, v jsontext.Value) error {
	shown := string(v)
	if len(shown) > 40 {
		shown = strings.ToValidUTF8(shown[:40], "") + "…"
	}
	return status.Errorf(status.Incompatible, "arrowio", "%q has %s where the first lines have %v", name, shown, want).
		WithHint("%s", otherTypes).With("field", name)
}

// unknown returns the error for a key that the sample does not have.
func unknown(name string) error {
	return status.Errorf(status.Incompatible, "arrowio", "the key %q has a value, but none in the first %d MiB of the file, which give the columns their types", name, unitBytes>>20).
		WithHint("choose columns without it (columns=; Go: Columns), or move a line with it to the front").With("field", name)
}

func twice(name string) error {
	return status.Errorf(status.DataLoss, "arrowio", "the key %q occurs twice", name).WithHint("write each key once").With("field", name)
}

// IsObject reports whether a line is an object with a key.
func IsObject(line []byte) bool {
	v, err := jsontext.Parse(bytes.TrimPrefix(line, []byte(bom)))
	if err != nil {
		return false
	}
	for range v.Quoted() {
		return true
	}
	return false
}
