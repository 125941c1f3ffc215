package form

import "github.com/meshfeed/meshfeed/internal/jsontext"

// A Value is a value of a document, bound to a Go variable as package flag binds a flag.
type Value interface {
	Read(r *jsontext.Reader) error // stores the value in the variable
	Write(w *jsontext.Writer)
	Given() bool        // whether there is a value to write
	Describe(s *Schema) // writes the members of its JSON Schema
}

// A Member is one row of the table of an object: a key, its value, and a sentence. The
// table drives reading, writing and the JSON Schema.
type Member struct {
	key, text string
	value     Value
	required  bool
	standard  string // the default in the schema, as JSON
}

// Key makes a member. The text describes it in the schema.
func Key(key string, value Value, text string) *Member {
	return &Member{key: key, value: value, text: text}
}

// Required marks a member that an object must have.
func (m *Member) Required() *Member {
	m.required = true
	return m
}

// Default says, in the schema, what a missing member stands for. The value is JSON.
func (m *Member) Default(value string) *Member {
	m.standard = value
	return m
}

// Keys lists the keys of members, first the required ones.
func Keys(members []*Member) []string {
	keys := requiredKeys(members)
	for _, m := range members {
		if !m.required {
			keys = append(keys, m.key)
		}
	}
	return keys
}

func requiredKeys(members []*Member) (keys []string) {
	for _, m := range members {
		if m.required {
			keys = append(keys, m.key)
		}
	}
	return keys
}

// object is the value of an object. An error calls it want.
type object struct {
	want    string
	members []*Member
}

// Object is an object with these members. An error calls it want.
func Object(want string, members ...*Member) Value { return &object{want, members} }

func (o *object) Read(r *jsontext.Reader) error {
	return r.Members(o.want, len(requiredKeys(o.members)), Keys(o.members), func(key string) error {
		for _, m := range o.members {
			if m.key == key {
				return m.value.Read(r)
			}
		}
		return nil
	})
}

// Write writes the members that are given, in the order of the table.
func (o *object) Write(w *jsontext.Writer) {
	w.Open('{')
	for _, m := range o.members {
		if m.required || m.value.Given() {
			m.value.Write(w.Key(m.key))
		}
	}
	w.Close('}')
}

func (o *object) Given() bool {
	for _, m := range o.members {
		if m.required || m.value.Given() {
			return true
		}
	}
	return false
}

func (o *object) Describe(s *Schema) {
	s.Key("type").String("object")
	if required := requiredKeys(o.members); required != nil {
		s.Key("required").Strings(required...)
	}
	s.Key("additionalProperties").Bool(false)
	s.Key("properties").Open('{')
	for _, m := range o.members {
		s.Object(m.key, func(s *Schema) {
			s.describe(m.text, m.value)
			if m.standard != "" {
				s.Key("default").Raw(m.standard)
			}
		})
	}
	s.Close('}')
}
