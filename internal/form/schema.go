package form

import (
	"slices"

	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Schema writes a JSON Schema, of draft 2020-12.
type Schema struct {
	jsontext.Writer
	definitions *[]definition
}

type definition struct{ name, schema string }

// Schema returns the JSON Schema of documents with these members. The text says what a
// document is, and the conditions are further members of the schema.
func (f *Form) Schema(text string, members []*Member, conditions string) string {
	members = versioned(members)
	if !slices.Equal(Keys(members), f.keys) {
		panic("the keys of form " + f.Name + " differ from its table")
	}
	s := &Schema{definitions: &[]definition{}}
	s.Open('{')
	s.Key("$schema").String("https://json-schema.org/draft/2020-12/schema")
	s.Key("$id").String(f.urn())
	s.Key("title").String("meshfeed " + f.Name + " document")
	s.describe(text, Object(f.noun, members...))
	s.Rule(conditions)
	if len(*s.definitions) > 0 {
		s.Key("$defs").Open('{')
		for _, d := range *s.definitions {
			s.Key(d.name).Raw(d.schema)
		}
		s.Close('}')
	}
	s.Close('}')
	return string(s.Text)
}

func (f *Form) urn() string { return "urn:meshfeed:" + f.Name + ":1" }

// Include refers to the schema of another form, and adds it to the definitions.
func (s *Schema) Include(f *Form, schema string) {
	s.Key("$ref").String(f.urn())
	*s.definitions = append(*s.definitions, definition{f.Name, schema})
}

// Rule writes members that are JSON already: "minItems":1,"maxItems":2.
func (s *Schema) Rule(members string) {
	if members != "" {
		s.Raw(members)
	}
}

// Object writes a member with a JSON Schema as its value.
func (s *Schema) Object(key string, describe func(s *Schema)) {
	s.Key(key).Open('{')
	describe(s)
	s.Close('}')
}

// AnyOf writes the alternatives of a value. The rule is an alternative that is JSON
// already, or empty.
func (s *Schema) AnyOf(rule string, values ...Value) {
	s.Key("anyOf").Open('[')
	if rule != "" {
		s.Raw("{" + rule + "}")
	}
	s.schemas(values)
	s.Close(']')
}

func (s *Schema) schemas(values []Value) {
	for _, v := range values {
		s.Open('{')
		v.Describe(s)
		s.Close('}')
	}
}

// describe writes the schema of a value after a text, which may be empty.
func (s *Schema) describe(text string, value Value) {
	if text != "" {
		s.Key("description").String(text)
	}
	value.Describe(s)
}

// refer refers to a definition, and adds it if the schema does not have it yet.
func (s *Schema) refer(name, text string, value Value) {
	s.Key("$ref").String("#/$defs/" + name)
	d := &Schema{definitions: s.definitions}
	d.Open('{')
	d.describe(text, value)
	d.Close('}')
	for _, other := range *s.definitions {
		if other.name == name {
			if other.schema != string(d.Text) {
				panic("two definitions have the name " + name)
			}
			return
		}
	}
	*s.definitions = append(*s.definitions, definition{name, string(d.Text)})
}

func (s *Schema) bounds(kind string, least, most int64, write func(w *jsontext.Writer, n int64)) {
	s.Key("type").String(kind)
	write(s.Key("minimum"), least)
	write(s.Key("maximum"), most)
}
