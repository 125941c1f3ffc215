// Package answer holds what the validator's guest answers. The guest exports it
// to WebAssembly; compiled natively, it is what the guest is compared with, byte
// for byte.
//
//	var v answer.Validator
//	reply := v.Describe(text)            // JSON: document, arrays, report, text, error
//	numbers := v.Table(0, 0, 0, 1024)    // of the document described last
//	reply = answer.Samples(question)     // JSON: records
//	reply = answer.Schema(tail, size)    // JSON: fields, rows
//
// A reply is JSON without spaces. Its keys are always all there, and null is
// what is not known. An error is {"code","op","message","hint","path"}, with
// the code's name as package status spells it.
package answer

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/layout/picture"
)

// Version is the version of the questions and answers. A guest with another
// version is not understood.
const Version = 1

// Validator answers about one document at a time.
type Validator struct{ layout *layout.Layout }

// maxRanges bounds the ranges in the report of a reply, since JSON is slow. What
// it leaves out as null stands in tables.
const maxRanges = 1 << 18

// Describe reads a layout document and says all that is small:
//
//	{"document":"…","digest":"…","arrays":[…],"report":{…},"text":"…","error":null}
//
// The document is the canonical text, as a string, so that its bytes survive
// being parsed. The report is that of [layout.Layout.Report]; the arrays are in
// their order, which an object in JavaScript need not keep, with name, field,
// kind, dtype, shape, batch_dims, spec and tiles per dimension. The text is the
// picture.
func (v *Validator) Describe(text []byte) []byte {
	v.layout = nil
	d, err := document.Parse(text)
	if err == nil {
		v.layout, err = layout.New(d)
	}
	if err != nil {
		return writer(`{"document":null,"digest":null,"arrays":[],"report":null,"text":null`).end(err)
	}
	canonical := document.Canonical(d)
	b := writer(`{"document":`).str(string(canonical)).add(`,"digest":`).str(document.Digest(canonical))
	b = b.arrays(v.layout)
	b = b.add(`,"report":`).add(string(document.Report(v.layout, document.ReportOptions{Ranges: maxRanges})))
	b = b.add(`,"text":`).str(picture.Text(v.layout, picture.Options{}))
	return b.end(nil)
}

// The tables.
const (
	Devices   = 0 // as [layout.Layout.DeviceTable]
	Processes = 1 // as [layout.Layout.ProcessTable]; the array is not looked at
	Delivered = 2 // as [layout.Layout.DeliveredTable]
)

// Table gives rows of a table of the document described last. It is empty where
// there is nothing to know, and where the part asked for is larger than
// [document.MaxTable] numbers.
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
