// Package document reads and writes the planner's documents as JSON ([Parse],
// [Canonical]). It writes the planner's report as JSON ([Report]) and text ([Text]).
// Go, C, Python, the command and the browser share these forms.
package document

import (
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/form"
)

// Version is the version of the format.
const Version = form.Version

// Limits of a document's text, beside the limits of package strategy. Parse checks every
// limit before it allocates memory in proportion to the limited number.
const (
	MaxBytes  = form.MaxBytes
	MaxArrays = 1 << 16 // arrays of a model's tree
)

// Parse reads a document. Text that is not JSON in UTF-8, keys that repeat, are unknown
// or differ in case, and integers in other spellings, such as 1e3, are errors. So is
// everything that [strategy.Document.Validate] refuses. An error is InvalidArgument, with
// a JSON Pointer in its attribute "path".
func Parse(text []byte) (*strategy.Document, error) {
	d := &strategy.Document{}
	if err := form.Strategy.Read(text, members(d)); err != nil {
		return nil, misplaced(err)
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return d, nil
}

// Canonical returns the text of a document without spaces and with its keys in the
// order of the format. Fields that the document leaves out are left out. [Parse]
// returns the same document for this text.
func Canonical(d *strategy.Document) []byte { return form.Write(members(d)) }

// Schema returns the JSON Schema of strategy documents, of draft 2020-12. Every
// document that [Parse] accepts is valid by it. Parse refuses more than a schema
// can say, such as keys that repeat.
func Schema() string {
	return form.Strategy.Schema("A question to the planner: a model, how it is trained, and on what. Every strategy document fits this schema. "+
		"A text that fits may still be refused: `meshfeed advise` knows the rules that a schema cannot say.", members(&strategy.Document{}), "")
}
