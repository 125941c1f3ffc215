// Package document reads diagrams as JSON, in the form that Go, C, Python and the
// command share:
//
//	{"meshfeed":1,"diagram":{KIND:{…}}}
//
// The tables in members.go list the kinds with their members.
//
// [Draw] parses and draws. [DrawOf] accepts only some kinds.
package document

import (
	"errors"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/diagram"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
)

// MaxBytes limits the text of a document.
const MaxBytes = form.MaxBytes

// Draw parses a document and draws its diagram. Text that is not JSON in UTF-8, keys that
// repeat, are unknown or differ in case, and integers in other spellings, such as 1e3, are
// errors. An error is InvalidArgument, with a JSON Pointer in its attribute "path".
func Draw(text []byte) (*diagram.Diagram, error) {
	return DrawOf(text, all()...)
}

// DrawOf is Draw for a document of one of the given kinds. A program that calls DrawOf
// but not Draw contains only the code of these kinds.
func DrawOf(text []byte, kinds ...Kind) (*diagram.Diagram, error) {
	kind, spec, err := parse(text, kinds)
	if err != nil {
		return nil, err
	}
	d, err := spec.Draw()
	if err != nil {
		return nil, below("/diagram/"+kind, err)
	}
	return d, nil
}

// below returns a copy of err with pointer before its path.
func below(pointer string, err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	path, _ := e.Attr("path").(string)
	found := form.Diagram.Invalid(pointer+path, "%s", strings.TrimPrefix(e.Msg, path+": "))
	found.Hint = e.Hint
	return found
}

// parse reads a document. It returns the name of the kind and the diagram. If sizes do
// not fit each other, method Draw of the diagram returns the error.
func parse(text []byte, kinds []Kind) (kind string, spec diagram.Spec, err error) {
	var c choice
	err = form.Diagram.Read(text, c.members(kinds))
	if err == nil && c.spec == nil {
		err = form.Diagram.Invalid("/diagram", "the diagram is empty").WithHint("name its kind: %s", strings.Join(form.Keys(c.kinds(kinds)), ", "))
	}
	return c.kind, c.spec, err
}

// Schema returns the JSON Schema of diagram documents, of draft 2020-12. Every document
// that [Draw] accepts is valid by it. Draw refuses more than a schema can say, such as
// keys that repeat.
func Schema() string {
	return form.Diagram.Schema("A diagram of one kind. Every diagram document fits this schema. A text that fits may still be refused: "+
		"`meshfeed draw` knows the rules that a schema cannot say.", new(choice).members(all()), "")
}
