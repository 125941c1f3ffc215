// Package document reads trees of arrays as JSON. It writes the memory that they take as
// JSON ([Report]) and as a table ([Text]).
//
//	{"meshfeed":1, "mesh":{"axes":[["data",4]]},
//	 "arrays":{"w":{"shape":[512,512],"dtype":"bfloat16","spec":["data"]}},
//	 "optimizer":"adamw"}
//
// The mesh and the specs are written as in a layout document. The member optimizer is the
// name of an optimizer. Its states follow from the arrays. Or it lists the states in the
// form of arrays.
package document

import (
	"errors"

	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
)

// Version is the version of the format.
const Version = form.Version

// Limits of a document.
const (
	MaxBytes  = form.MaxBytes
	MaxArrays = 1 << 16 // in each of the members arrays, optimizer and batch
)

// Parse reads a document. Text that is not JSON in UTF-8, keys that repeat, are unknown
// or differ in case, and integers in other spellings, such as 1e3, are errors. An error
// is InvalidArgument, with a JSON Pointer in its attribute "path".
func Parse(text []byte) (*memory.Tree, error) {
	var d document
	err := form.Memory.Read(text, d.members())
	if err != nil {
		return nil, err
	}
	if d.Mesh, err = d.mesh.Build(); err != nil {
		e, _ := errors.AsType[*status.Error](err)
		e.Op = "memory"
		return nil, e
	}
	return &d.Tree, nil
}

// Schema returns the JSON Schema of memory documents, of draft 2020-12. Every document
// that [Parse] accepts is valid by it. Parse refuses more than a schema can say, such as
// keys that repeat.
func Schema() string {
	return form.Memory.Schema("The arrays of a model, and how each array is partitioned over a mesh. Every memory document fits this schema. "+
		"A text that fits may still be refused: `meshfeed memory` knows the rules that a schema cannot say.", new(document).members(), "")
}

// Measure reads a document and computes the sizes of its arrays.
func Measure(text []byte) (*memory.Usage, error) {
	tree, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return memory.Measure(tree), nil
}
