// Package form lists the kinds of documents, and reads what all of them share: a JSON
// object with the member "meshfeed", which is the version.
//
// Because the kinds are in one place, the error about a document of another kind names
// that kind and the commands that read it.
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
	Name     string // name in errors
	noun     string
	remedy   string // remedy in the error of a command that reads another form
	required int    // the number of keys that a document must have, from the first
	keys     []string
}

// The forms.
var (
	Layout = &Form{"layout", "a layout document", "meshfeed check and meshfeed plan read layouts", 3,
		[]string{"meshfeed", "mesh", "arrays", "batch", "dataset", "loading", "prefetch", "budget"}}
	Strategy = &Form{"strategy", "a strategy document", "meshfeed advise reads strategy documents", 4,
		[]string{"meshfeed", "model", "training", "cluster", "search", "input"}}
	Memory = &Form{"memory", "a memory document", "meshfeed memory reads memory documents", 3,
		[]string{"meshfeed", "mesh", "arrays", "optimizer", "precision", "batch", "activation_bytes", "capacity_bytes"}}
	Measurements = &Form{"measurements", "a measurements document", "loader.report() and mf_diagnose read measurements documents", 2,
		[]string{"meshfeed", "processes", "silent"}}
	Diagram = &Form{"diagram", "a diagram document", "meshfeed draw reads diagram documents", 2,
		[]string{"meshfeed", "diagram"}}
)

// report is the planner's report, which no command reads.
var report = &Form{"report", "a report of meshfeed advise", `its member "layout" is a layout document`, 0,
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

// Read reads a document. It calls visit for every key of the root except "meshfeed";
// visit must read the value. Read is as strict as [jsontext.Reader].
func (f *Form) Read(text []byte, visit func(r *jsontext.Reader, key string) error) error {
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
	err = r.Members(f.noun, f.required, f.keys, func(key string) error {
		if key == "meshfeed" {
			return readVersion(r)
		}
		return visit(r, key)
	})
	if err == nil {
		return nil
	}
	if found := f.mistaken(text); found != nil {
		return f.Invalid("", "expected %s, but found %s", f.noun, found.noun).WithHint("%s", found.remedy)
	}
	return err
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

func readVersion(r *jsontext.Reader) error {
	v, err := r.Integer("the version of the format", -jsontext.MaxInteger, jsontext.MaxInteger)
	if err == nil && v != Version {
		return r.Fail("the document has version %d, but this release reads version %d", v, Version)
	}
	return err
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
