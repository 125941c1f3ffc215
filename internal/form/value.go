package form

import "github.com/meshfeed/meshfeed/internal/jsontext"

type integer[T ~int | ~int64] struct {
	to          *T
	want        string
	least, most int64
}

// Integer is an integer from least to most. Zero stands for a missing member.
func Integer[T ~int | ~int64](to *T, want string, least, most int64) Value {
	return &integer[T]{to, want, least, most}
}

func (v *integer[T]) Read(r *jsontext.Reader) error {
	n, err := r.Integer(v.want, v.least, v.most)
	*v.to = T(n)
	return err
}

func (v *integer[T]) Write(w *jsontext.Writer) { w.Int(int64(*v.to)) }
func (v *integer[T]) Given() bool              { return *v.to != 0 }
func (v *integer[T]) Describe(s *Schema) {
	s.bounds("integer", v.least, v.most, (*jsontext.Writer).Int)
}

type fixed struct {
	to          *int
	want        string
	least, most int64
}

// Fixed is a number with at most three decimals. The variable and the bounds count
// thousandths. Zero stands for a missing member.
func Fixed(to *int, want string, least, most int64) Value { return &fixed{to, want, least, most} }

func (v *fixed) Read(r *jsontext.Reader) error {
	n, err := r.Fixed(v.want, v.least, v.most)
	*v.to = int(n)
	return err
}

func (v *fixed) Write(w *jsontext.Writer) { w.Fixed(int64(*v.to)) }
func (v *fixed) Given() bool              { return *v.to != 0 }
func (v *fixed) Describe(s *Schema) {
	s.bounds("number", v.least, v.most, (*jsontext.Writer).Fixed)
}

type boolean struct {
	to   *bool
	want string
}

// Bool is true or false. False stands for a missing member.
func Bool(to *bool, want string) Value { return &boolean{to, want} }

func (v *boolean) Read(r *jsontext.Reader) (err error) {
	*v.to, err = r.Bool(v.want)
	return err
}

func (v *boolean) Write(w *jsontext.Writer) { w.Bool(*v.to) }
func (v *boolean) Given() bool              { return *v.to }
func (v *boolean) Describe(s *Schema)       { s.Key("type").String("boolean") }

type word struct {
	to   *string
	want string
}

// Word is a string that is not empty.
func Word(to *string, want string) Value { return &word{to, want} }

func (v *word) Read(r *jsontext.Reader) (err error) {
	*v.to, err = r.Word(v.want)
	return err
}

func (v *word) Write(w *jsontext.Writer) { w.String(*v.to) }
func (v *word) Given() bool              { return *v.to != "" }
func (v *word) Describe(s *Schema) {
	s.refer("name", "A text of at most 1,024 bytes in UTF-8.", &ruled{v, `"type":"string","minLength":1,"maxLength":1024`, true})
}

type named struct {
	want  string
	set   func(name string) error
	get   func() string
	names func() []string
}

// Choice is a Word that the schema restricts to some words. Reading does not.
func Choice[T ~string](to *T, want string, words ...T) Value {
	return &named{
		want,
		func(name string) error {
			*to = T(name)
			return nil
		},
		func() string { return string(*to) },
		func() (names []string) {
			for _, word := range words {
				names = append(names, string(word))
			}
			return names
		},
	}
}

// Parsed is a Word that stands for one of the values. An error of parse becomes an error
// about the word.
func Parsed[T interface{ String() string }](to *T, want string, parse func(name string) (T, error), values func() []T) Value {
	return &named{
		want,
		func(name string) (err error) {
			*to, err = parse(name)
			return err
		},
		func() string { return (*to).String() },
		func() (names []string) {
			for _, v := range values() {
				names = append(names, v.String())
			}
			return names
		},
	}
}

func (v *named) Read(r *jsontext.Reader) error {
	name, err := r.Word(v.want)
	if err != nil {
		return err
	}
	return r.At(v.set(name))
}

func (v *named) Write(w *jsontext.Writer) { w.String(v.get()) }
func (v *named) Given() bool              { return v.get() != "" }
func (v *named) Describe(s *Schema)       { s.Key("enum").Strings(v.names()...) }

type pointer struct {
	slice sequence // a slice with at most one element
	value Value
}

// Pointer is a member that may be missing, although the zero of its variable has a meaning.
func Pointer[T any](to **T, value func(to *T) Value) Value {
	variable := new(T)
	return &pointer{func(do action, _ int) int {
		switch do {
		case add:
			*to = new(*variable)
		case load:
			*variable = **to
		case reset:
			*variable = *new(T)
		case length:
			if *to == nil {
				return -1
			}
		}
		return 1
	}, value(variable)}
}

func (v *pointer) Read(r *jsontext.Reader) error {
	v.slice(reset, 0)
	err := v.value.Read(r)
	v.slice(add, 0)
	return err
}

func (v *pointer) Write(w *jsontext.Writer) {
	v.slice(load, 0)
	v.value.Write(w)
}

func (v *pointer) Given() bool        { return v.slice(length, 0) >= 0 }
func (v *pointer) Describe(s *Schema) { v.value.Describe(s) }
