// Package reply computes the replies of the layout validator, a WebAssembly module.
// Each export of the module returns one reply. The package also compiles natively, and
// tests compare the bytes of both builds.
//
//	var v reply.Validator
//	v.Describe(text)                // JSON: document, arrays, report, text, error
//	v.Table(0, reply.Devices, 0, 8) // numbers of the document described last
//	reply.Samples(question)         // JSON: records
//	reply.Schema(tail, size)        // JSON: fields, rows
//
// Except for tables, a reply is JSON without spaces and always has all keys. A
// value that is not known is null. Package envelope documents the error.
package reply

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/wasm/internal/envelope"
)

// Version numbers the format of the arguments and replies. A host rejects a module
// of another version.
const Version = 1

// Validator makes replies about one document at a time.
type Validator struct{ layout *layout.Layout }

// maxRanges bounds the ranges in a report, because a long JSON text is slow to
// parse. A longer list is null in the report; [Validator.Table] returns its values.
const maxRanges = 1 << 18

// Describe parses a layout document and returns all that is known about it except
// the tables:
//
//	{"document":"…","arrays":[…],"report":{…},"text":"…","error":null}
//
// The document is its canonical text in a JSON string, so that a JSON parser keeps the
// bytes. The report comes from [document.Report], and the text from [picture.Text].
//
// The arrays are a list, because a JavaScript object may change the order of its
// keys. An array has name, field, kind, dtype, shape, batch_dims, spec and the
// tiles per dimension.
func (v *Validator) Describe(text []byte) []byte {
	v.layout = nil
	d, err := document.Parse(text)
	if err == nil {
		v.layout, err = layout.Draft(d)
	}
	if err != nil {
		w := envelope.Begin()
		w.Key("document").Null()
		w.Key("arrays").Raw("[]")
		w.Key("report").Null()
		w.Key("text").Null()
		return envelope.End(w, err)
	}
	w := envelope.Begin()
	w.Key("document").String(string(document.Canonical(d)))
	writeArrays(w.Key("arrays"), v.layout)
	w.Key("report").Raw(string(document.Report(v.layout, document.ReportOptions{Ranges: maxRanges})))
	w.Key("text").String(picture.Text(v.layout, picture.Options{}))
	return envelope.End(w, nil)
}

// The values of what, which select a table.
const (
	Devices   = 0 // [document.DeviceTable]
	Processes = 1 // [document.ProcessTable]; ignores the array
	Delivered = 2 // [document.DeliveredTable]
)

// Table returns count rows, beginning with row from, of a table of the last
// document that Describe read. It returns nothing if that document had an error, or
// if the rows have more than [document.MaxTable] numbers.
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
