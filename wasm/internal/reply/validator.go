// Package reply computes the replies of the validator's guest. The guest exports
// these functions to WebAssembly. Tests compile them natively and compare the
// bytes.
//
//	var v reply.Validator
//	reply := v.Describe(text)            // JSON: document, arrays, report, text, error
//	numbers := v.Table(0, 0, 0, 1024)    // of the document described last
//	reply = reply.Samples(question)     // JSON: records
//	reply = reply.Schema(tail, size)    // JSON: fields, rows
//
// A reply is JSON without spaces. It always has all keys; null is a value that
// is not known. An error is {"code","op","message","hint","path"}, with the name
// of the code as package status spells it.
package reply

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
)

// Version is the version of the questions and replies. A host accepts only the
// version that it knows.
const Version = 1

// Validator makes replies about one document at a time.
type Validator struct{ layout *layout.Layout }

// maxRanges bounds the ranges in the report of a reply, because JSON is slow. The
// report has null instead of longer lists, and tables have their values.
const maxRanges = 1 << 18

// Describe reads a layout document and returns everything that is small:
//
//	{"document":"…","digest":"…","arrays":[…],"report":{…},"text":"…","error":null}
//
// The document is the canonical text, as a string, so that a JSON parser keeps
// its bytes. The report is that of [document.Report]. The arrays are a list in
// their order, because an object in JavaScript need not keep it, with name,
// field, kind, dtype, shape, batch_dims, spec and tiles per dimension. The text
// is the picture.
func (v *Validator) Describe(text []byte) []byte {
	v.layout = nil
	d, err := document.Parse(text)
	if err == nil {
		v.layout, err = layout.New(d)
	}
	if err != nil {
		w := begin()
		w.Key("document").Null()
		w.Key("digest").Null()
		w.Key("arrays").Raw("[]")
		w.Key("report").Null()
		w.Key("text").Null()
		return end(w, err)
	}
	canonical := document.Canonical(d)
	w := begin()
	w.Key("document").String(string(canonical))
	w.Key("digest").String(document.Digest(canonical))
	writeArrays(w.Key("arrays"), v.layout)
	w.Key("report").Raw(string(document.Report(v.layout, document.ReportOptions{Ranges: maxRanges})))
	w.Key("text").String(picture.Text(v.layout, picture.Options{}))
	return end(w, nil)
}

// The tables.
const (
	Devices   = 0 // [document.DeviceTable]
	Processes = 1 // [document.ProcessTable]; ignores the array
	Delivered = 2 // [document.DeliveredTable]
)

// Table returns rows of a table of the document that Describe read last. It is
// empty if nothing is known, or if the rows have more than [document.MaxTable]
// numbers.
func (v *Validator) Table(array, what, from, count uint32) []float64 {
	if v.layout == nil {
		return nil
	}
	switch what {
	case Devices:
		return document.DeviceTable(v.layout, int(array), int(from), int(count))
	case Processes:
		return document.ProcessTable(v.layout, int(from), int(count))
	case Delivered:
		return document.DeliveredTable(v.layout, int(array), int(from), int(count))
	}
	return nil
}
