// Package document reads and writes layouts as JSON. A document describes the
// wanted layout ([Layout], [Parse], [Canonical]). A report describes what is computed from it
// ([Report], [DeviceTable] and the other tables). Go, Python, the command and the
// browser share both forms.
package document

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/internal/form"
)

// Version is the version of the format.
const Version = form.Version

// MaxBytes limits the text of a document. Parse checks this limit and the limits of package
// layout before it allocates memory in proportion to the limited number.
const MaxBytes = form.MaxBytes

// Parse reads a layout document. Text that is not JSON in UTF-8, keys that repeat, are
// unknown or differ in case, and integers in other spellings, such as 1e3, are errors. So
// is everything that [layout.Document.Validate] refuses. An error is InvalidArgument, with
// a JSON Pointer in its attribute "path".
func Parse(text []byte) (*layout.Document, error) {
	var d document
	if err := form.Layout.Read(text, d.members()); err != nil {
		return nil, err
	}
	for _, shape := range d.shapes {
		if err := d.checkBatchDimensions(shape); err != nil {
			return nil, err
		}
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return &d.Document, nil
}

// Layout makes the layout of a layout document. It returns the errors of [Parse] and of
// [layout.New]. A program that reports faults calls Parse and [layout.Draft].
func Layout(text []byte) (*layout.Layout, error) {
	d, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return layout.New(d)
}

// Schema returns the JSON Schema of layout documents, of draft 2020-12. Every document that
// [Parse] accepts is valid by it. Parse refuses more than a schema can say, such as keys
// that repeat.
func Schema() string {
	return form.Layout.Schema("A mesh, the arrays of a batch, and how each array is partitioned over the mesh. Every layout document fits this schema. "+
		"A text that fits may still be refused: `meshfeed check` knows the rules that a schema cannot say.", new(document).members(),
		`"if":{"not":{"required":["batch"]}},"then":{"description":"Without a batch no array has a batch dimension.",`+
			`"properties":{"arrays":{"additionalProperties":{"properties":{"shape":{"$ref":"#/$defs/sizes"}}}}}}`)
}

// Canonical returns the canonical text of a document. Documents with the same
// meaning have the same text.
//
// Keys are in the order of the format, and arrays in the order of the user. Values that
// equal their defaults, spaces, and escapes that JSON does not need are left out. A list of
// devices is left out if a mesh without it has the same devices and numbers. A batch size
// of one dimension is a number, not a list.
func Canonical(d *layout.Document) []byte {
	normal := document{Document: *d}
	normal.normalize()
	return form.Write(normal.members())
}

// normalize removes values that equal their defaults. It changes nothing that the
// document shares with another one.
func (d *document) normalize() {
	d.Mesh = withoutDevices(d.Mesh)
	d.Arrays = slices.Clone(d.Arrays)
	for i := range d.Arrays {
		a := &d.Arrays[i]
		dropDefault(&a.Field, a.Name)
		if len(a.Spec) == 0 {
			a.Spec = nil
		}
	}
	if d.Batch != nil {
		b := *d.Batch
		dropDefault(&b.Remainder, layout.Drop)
		dropDefault(&b.Mask, layout.DefaultMask)
		if b.MaskSpec.Equal(d.SharedSpec()) {
			b.MaskSpec = nil
		}
		if len(b.Extras) == 0 {
			b.Extras = nil
		}
		d.Batch = &b
	}
	if d.Dataset != nil {
		s := *d.Dataset
		dropDefault(&s.Order, sampler.Sequential)
		d.Dataset = &s
	}
	dropDefault(&d.Loading, layout.LoadProcess)
	if d.Prefetch != nil && *d.Prefetch == layout.DefaultPrefetch {
		d.Prefetch = nil
	}
}

func dropDefault(value *string, standard string) {
	if *value == standard {
		*value = ""
	}
}

// withoutDevices replaces the list of devices by a number of processes if a mesh with this
// number has the same devices and numbers.
func withoutDevices(s layout.MeshSpec) layout.MeshSpec {
	processes, n := s.Processes, len(s.Devices)
	if s.Devices != nil {
		perProcess := 0
		for perProcess < n && s.Devices[perProcess].Process == 0 {
			perProcess++
		}
		if perProcess == 0 || n%perProcess != 0 {
			return s
		}
		for i, d := range s.Devices {
			if d != (mesh.Device{Process: i / perProcess, ID: i}) {
				return s
			}
		}
		processes = n / perProcess
	}
	if processes == 1 {
		processes = 0
	}
	return layout.MeshSpec{Axes: s.Axes, Processes: processes}
}
