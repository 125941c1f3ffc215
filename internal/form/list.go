package form

import "github.com/meshfeed/meshfeed/internal/jsontext"

// A sequence is a slice, and a variable for one of its elements, to which the table of an
// element is bound. It is one function, because a module of WebAssembly has all code of
// package form once, but this function for every type of elements.
type sequence func(do action, i int) int

type action int

const (
	empty  action = iota // make the slice empty, but not nil
	reset                // zero the variable
	add                  // append the variable
	load                 // copy element i to the variable
	length               // return the length, or -1 for nil
)

func sequenceOf[T any](to *[]T, element *T) sequence {
	return func(do action, i int) int {
		switch do {
		case empty:
			*to = []T{}
		case reset:
			*element = *new(T)
		case add:
			*to = append(*to, *element)
		case load:
			*element = (*to)[i]
		case length:
			if *to == nil {
				return -1
			}
		}
		return len(*to)
	}
}

type list struct {
	slice sequence
	want  string
	most  int
	value Value
}

// List is a list of at most most elements.
func List[T any](to *[]T, want string, most int, value func(to *T) Value) Value {
	element := new(T)
	return &list{sequenceOf(to, element), want, most, value(element)}
}

func (v *list) Read(r *jsontext.Reader) error {
	v.slice(empty, 0)
	return r.List(v.want, v.most, func(int) error {
		v.slice(reset, 0)
		err := v.value.Read(r)
		v.slice(add, 0)
		return err
	})
}

func (v *list) Write(w *jsontext.Writer) {
	w.Open('[')
	for i := range max(v.slice(length, 0), 0) {
		v.slice(load, i)
		v.value.Write(w)
	}
	w.Close(']')
}

func (v *list) Given() bool { return v.slice(length, 0) >= 0 }

func (v *list) Describe(s *Schema) {
	s.Key("type").String("array")
	s.Key("maxItems").Int(int64(v.most))
	s.Object("items", v.value.Describe)
}

type oneOrList struct {
	*list
	one Value
}

// OneOrList is a list, or one element without the brackets. It writes a list.
func OneOrList[T any](to *[]T, want string, most int, value, one func(to *T) Value) Value {
	element := new(T)
	return &oneOrList{&list{sequenceOf(to, element), want, most, value(element)}, one(element)}
}

func (v *oneOrList) Read(r *jsontext.Reader) error {
	if r.Kind() == jsontext.List {
		return v.list.Read(r)
	}
	v.slice(empty, 0)
	err := v.one.Read(r)
	v.slice(add, 0)
	return err
}

func (v *oneOrList) Describe(s *Schema) { s.AnyOf("", v.one, With(`"minItems":1`, v.list)) }

type tuple struct {
	want          string
	first, second Value
}

// Tuple is a list of two elements.
func Tuple(want string, first, second Value) Value { return &tuple{want, first, second} }

func (v *tuple) Read(r *jsontext.Reader) error {
	return r.Tuple(v.want, 2, func(i int) error {
		if i == 0 {
			return v.first.Read(r)
		}
		return v.second.Read(r)
	})
}

func (v *tuple) Write(w *jsontext.Writer) {
	w.Open('[')
	v.first.Write(w)
	v.second.Write(w)
	w.Close(']')
}

func (v *tuple) Given() bool { return v.first.Given() || v.second.Given() }

func (v *tuple) Describe(s *Schema) {
	s.Rule(`"type":"array","minItems":2`)
	s.Key("prefixItems").Open('[')
	s.schemas([]Value{v.first, v.second})
	s.Close(']')
	s.Key("items").Bool(false)
}

type byName struct {
	slice sequence
	want  string
	keys  []string
	most  int
	name  *string
	value Value
}

// ByName is an object with a member for each element of a list, such as {"x":{…},"y":{…}}.
// Function parts returns where an element has its name and its value. There are at most
// most elements, or any number if most is 0. The keys list the names, or are nil if the
// user chooses them.
func ByName[T any](to *[]T, want string, keys []string, most int, parts func(to *T) (*string, Value)) Value {
	element := new(T)
	name, value := parts(element)
	return &byName{sequenceOf(to, element), want, keys, most, name, value}
}

func (v *byName) Read(r *jsontext.Reader) error {
	path := r.Pointer()
	visit := func(key string) error {
		if v.most > 0 && v.slice(length, 0) == v.most {
			return r.FailAt(path, "expected %s, but the object has more than %d members", v.want, v.most)
		}
		v.slice(reset, 0)
		*v.name = key
		err := v.value.Read(r)
		v.slice(add, 0)
		return err
	}
	if v.keys != nil {
		return r.Members(v.want, 0, v.keys, visit)
	}
	v.slice(empty, 0)
	return r.Object(v.want, visit)
}

func (v *byName) Write(w *jsontext.Writer) {
	w.Open('{')
	for i := range max(v.slice(length, 0), 0) {
		v.slice(load, i)
		v.value.Write(w.Key(*v.name))
	}
	w.Close('}')
}

func (v *byName) Given() bool { return v.slice(length, 0) >= 0 }

func (v *byName) Describe(s *Schema) {
	s.Key("type").String("object")
	if v.most > 0 && v.keys == nil {
		s.Key("maxProperties").Int(int64(v.most))
	}
	names := Word(nil, "")
	if v.keys != nil {
		names = Choice[string](nil, "", v.keys...)
	}
	s.Object("propertyNames", names.Describe)
	s.Object("additionalProperties", v.value.Describe)
}
