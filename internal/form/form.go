// Package form reads, writes and describes documents: JSON objects with the member
// "meshfeed", which is the version.
//
// A table of members says what an object has. A row binds a key to a Go variable, as
// package flag binds a flag, and has the type, the range and a sentence:
//
//	func budget(b *layout.BudgetSpec) form.Value {
//		return form.Object("a budget",
//			form.Key("host_bytes", form.Integer(&b.HostBytes, "a number of bytes", 1, 1<<53), "Bytes per process."))
//	}
//
// The table drives [Form.Read], [Write] and [Form.Schema]. A value of another kind than
// those here is a type with the methods of [Value], often around one of them.
//
// The kinds of documents are in one place, so the error about a document of another kind
// names that kind and the commands that read it.
package form

import (
	"bytes"
	"errors"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Version is the version of all forms.
const Version = 1

// Limits of a document's text.
const (
	MaxBytes = 8 << 20
	MaxName  = 1024 // bytes of a key or string

	maxDepth = 32  // depth of nested objects and lists
	maxPath  = 120 // bytes of a path that a message shows
)

// Form is a kind of document.
type Form struct {
	Name   string // name in errors
	noun   string
	remedy string   // remedy in the error of a command that reads another form
	keys   []string // in the order of errors; a text has the form with the most of its keys
}

// The forms.
var (
	Layout = &Form{"layout", "a layout document", "meshfeed check and meshfeed plan read layouts",
		[]string{"meshfeed", "mesh", "arrays", "batch", "dataset", "loading", "prefetch", "budget"}}
	Strategy = &Form{"strategy", "a strategy document", "meshfeed advise reads strategy documents",
		[]string{"meshfeed", "model", "training", "cluster", "search", "input"}}
	Memory = &Form{"memory", "a memory document", "meshfeed memory reads memory documents",
		[]string{"meshfeed", "mesh", "arrays", "optimizer", "precision", "batch", "activation_bytes", "capacity_bytes"}}
	Measurements = &Form{"measurements", "a measurements document", "loader.report() and mf_diagnose read measurements documents",
		[]string{"meshfeed", "processes", "silent"}}
	Diagram = &Form{"diagram", "a diagram document", "meshfeed draw reads diagram documents",
		[]string{"meshfeed", "diagram"}}
)

// report is the planner's report, which no command reads.
var report = &Form{"report", "a report of meshfeed advise", `its member "layout" is a layout document`,
	[]string{"meshfeed", "model", "devices", "meshes", "evaluated", "pruned", "candidates", "best", "layout"}}

// Invalid makes the error of a document that breaks a rule at path, a JSON Pointer
// into it.
func (f *Form) Invalid(path, format string, args ...any) *status.Error {
	if path != "" {
		format = "%s: " + format
		args = append([]any{wording.Cut(path, maxPath)}, args...)
	}
	return status.Errorf(status.InvalidArgument, f.Name, format, args...).With("path", path)
}

// Read reads a document with these members into their variables. It is as strict as
// [jsontext.Reader].
func (f *Form) Read(text []byte, members []*Member) error {
	if len(text) > MaxBytes {
		return f.Invalid("", "the document has %d bytes, but may have %d", len(text), MaxBytes)
	}
	r, err := f.reader(text)
	if e, ok := errors.AsType[*status.Error](err); ok && otherEncoding(text) {
		return e.WithHint("save the text as UTF-8 without a byte order mark")
	}
	if err != nil {
		return err
	}
	if err = Object(f.noun, versioned(members)...).Read(r); err == nil {
		return nil
	}
	if found := f.mistaken(text); found != nil {
		return f.Invalid("", "expected %s, but found %s", f.noun, found.noun).WithHint("%s", found.remedy)
	}
	return err
}

// Write returns the text of a document without spaces, with its members in the order of
// the table.
func Write(members []*Member) []byte {
	w := &jsontext.Writer{}
	Object("", versioned(members)...).Write(w)
	return w.Text
}

// versioned adds the version of the form to the members of a document.
func versioned(members []*Member) []*Member {
	v := Version
	version := Integer(&v, "the version of the format", -jsontext.MaxInteger, jsontext.MaxInteger)
	version = Described(`"const":1`, Checked(version, func(r *jsontext.Reader) error {
		if v != Version {
			return r.Fail("the document has version %d, but this release reads version %d", v, Version)
		}
		return nil
	}))
	return slices.Concat([]*Member{Key("meshfeed", version, "The version of the format.").Required()}, members)
}

func (f *Form) reader(text []byte) (*jsontext.Reader, error) {
	return jsontext.NewReader(text, jsontext.Form{
		MaxDepth: maxDepth, MaxString: MaxName,
		Fail: func(pointer, message string) *status.Error { return f.Invalid(pointer, "%s", message) },
	})
}

// otherEncoding reports whether a text begins with a byte order mark, or as UTF-16 does
// without one.
func otherEncoding(text []byte) bool {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff", "{\x00", "\x00{"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return true
		}
	}
	return false
}

// mistaken returns the form that a text probably has, if that is not f: the form with
// the most of the text's keys. If two forms have as many, it returns nil.
func (f *Form) mistaken(text []byte) *Form {
	var keys []string
	r, err := f.reader(text)
	if err == nil {
		err = r.Object("a document", func(key string) error {
			keys = append(keys, key)
			r.Skip()
			return nil
		})
	}
	if err != nil {
		return nil
	}
	var found *Form
	most := f.known(keys)
	for _, other := range []*Form{Layout, Strategy, Memory, Measurements, Diagram, report} {
		if n := other.known(keys); n > most {
			found, most = other, n
		}
	}
	return found
}

// known counts the keys that the form has.
func (f *Form) known(keys []string) (n int) {
	for _, key := range keys {
		if slices.Contains(f.keys, key) {
			n++
		}
	}
	return n
}
