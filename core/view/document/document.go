// Package document makes views from JSON, for C, Python and other languages. A kind of view is a row
// of a table, with the members of its document:
//
//	slice  {"start": 0, "stop": 1000}
//	pad    {"field": "tokens", "length": 512, "value": -1, "too_long": "truncate"}
//
// The table reads documents, makes their views, and writes the JSON Schema. Long lists, such as the
// bits of a filter, are [Values] beside the document: a bit of a billion records takes 125 MB, but
// gigabytes as text, which also has to be parsed.
package document

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Kind is a kind of view.
type Kind struct {
	Name   string
	Values Elements // beside the document
	Slow   bool     // Make may read rows, so C makes the view in the background

	text    string // for the schema
	many    bool   // over any number of datasets
	members func() ([]*form.Member, maker)
}

// Elements is what the values of a kind of view are.
type Elements int

// The elements.
const (
	NoValues Elements = iota
	Records           // numbers of records
	Bits              // a bit for each record, the lowest bit of each byte first
	Function          // that computes rows
)

// Values are what a document cannot hold: the long list beside it, and a function of the program.
type Values struct {
	Records []int64
	Bits    []byte
	Count   int64 // the number of records or bits

	// Func computes the rows of the kind map: see view.Mapping.
	Func func(ctx context.Context, rows *view.Rows) error

	// Cache makes a view of the kind cache. This package may not import the function, because views
	// know nothing of files.
	Cache func(ctx context.Context, src source.Source, folder string, bytes int64) (source.Source, error)
}

// maker makes the views of a document that was read.
type maker func(ctx context.Context, below []source.Source, values Values) ([]source.Source, error)

// View is what a document asks for.
type View struct {
	kind *Kind
	make maker
}

// Find returns a kind of view. The error is InvalidArgument.
func Find(name string) (*Kind, error) {
	names := make([]string, len(kinds))
	for i := range kinds {
		if names[i] = kinds[i].Name; names[i] == name {
			return &kinds[i], nil
		}
	}
	return nil, status.Errorf(status.InvalidArgument, "view", "there is no view %s", wording.Quote(name)).
		WithHint("%s", wording.Suggest(name, names))
}

// Parse reads the document of a view. An empty text has no members. The error is InvalidArgument,
// with a JSON Pointer in its attribute "path".
func (k *Kind) Parse(text []byte) (*View, error) {
	if len(text) == 0 {
		text = []byte("{}")
	}
	r, err := jsontext.NewReader(text, jsontext.Form{MaxDepth: maxDepth, MaxString: len(text), Fail: invalid})
	if err != nil {
		return nil, err
	}
	members, make := k.members()
	if err := form.Object("the document of "+k.Name, members...).Read(r); err != nil {
		return nil, err
	}
	return &View{k, make}, nil
}

// maxDepth is the depth of nested objects and lists in a document.
const maxDepth = 8

func invalid(pointer, message string) *status.Error {
	if pointer != "" {
		message = pointer + ": " + message
	}
	return status.New(status.InvalidArgument, "view", message).With("path", pointer)
}

// Make makes n views over datasets: one, or the parts of a split. It keeps no values.
func (v *View) Make(ctx context.Context, below []source.Source, values Values, n int) ([]source.Source, error) {
	if len(below) != 1 && !v.kind.many {
		return nil, status.Errorf(status.InvalidArgument, "view", "%s takes one dataset, but got %d", v.kind.Name, len(below))
	}
	made, err := v.make(ctx, below, values)
	switch {
	case err != nil:
		return nil, err
	case len(made) != n:
		return nil, status.Errorf(status.InvalidArgument, "view", "%s makes %d datasets, but there is place for %d", v.kind.Name, len(made), n)
	}
	return made, nil
}

// Schema returns a JSON Schema, of draft 2020-12, with a member for each kind of view. The schema of
// the member describes the documents of that kind.
func Schema() string {
	members := make([]*form.Member, len(kinds))
	for i, k := range kinds {
		of, _ := k.members()
		members[i] = form.Key(k.Name, form.Object("", of...), k.text)
	}
	s := &form.Schema{}
	s.Open('{')
	s.Key("$schema").String("https://json-schema.org/draft/2020-12/schema")
	s.Key("$id").String("urn:meshfeed:view:1")
	s.Key("title").String("documents of meshfeed's views")
	s.Key("description").String("The documents of mf_dataset_view. Each member has the name of a kind, and the schema of its documents.")
	form.Object("", members...).Describe(s)
	s.Close('}')
	return string(s.Text)
}
