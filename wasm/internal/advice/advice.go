// Package advice computes the replies of the strategy planner, a WebAssembly module.
// The package also compiles natively, and tests compare the bytes of both builds.
//
//	advice.Advise(text) // JSON: report, layout, text, error
//	advice.Catalog()    // JSON: models, devices, error
//	advice.Diagram(text, width) // JSON: svg, error
//
// A reply is JSON without spaces and always has all keys. A value that is not known is
// null. Package envelope documents the error.
package advice

import (
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	diagrams "github.com/meshfeed/meshfeed/core/plan/diagram/document"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/wasm/internal/envelope"
)

// Version numbers the format of the arguments and replies. A host rejects a module
// of another version.
const Version = 1

// Advise parses a strategy document and returns the planner's report about it:
//
//	{"report":{…},"layout":"…","text":"…","error":null}
//
// The report comes from [document.Report], and the text from [document.Text]. The layout is
// the canonical text of the best candidate's layout in a JSON string, so that a JSON parser
// keeps the order of its arrays. It is null if no candidate fits.
func Advise(text []byte) []byte {
	d, err := document.Parse(text)
	var r *strategy.Report
	if err == nil {
		r, err = strategy.Advise(d)
	}
	w := envelope.Begin()
	if err != nil {
		w.Key("report").Null()
		w.Key("layout").Null()
		w.Key("text").Null()
		return envelope.End(w, err)
	}
	w.Key("report").Raw(string(document.Report(r)))
	if w.Key("layout"); r.Layout == nil {
		w.Null()
	} else {
		w.String(string(layouts.Canonical(r.Layout)))
	}
	w.Key("text").String(document.Text(d, r))
	return envelope.End(w, nil)
}

// Catalog lists the models and the devices that documents can name:
//
//	{"models":[{"name","title","source","parameters","transformer":{…}}],
//	 "devices":[{"name","title","memory","per_node"}],"error":null}
//
// A transformer has the form of a document.
func Catalog() []byte {
	w := envelope.Begin()
	w.Key("models").Open('[')
	for _, p := range transformer.Presets() {
		w.Open('{')
		w.Key("name").String(p.Name)
		w.Key("title").String(p.Title)
		w.Key("source").String(p.Source)
		w.Key("parameters").Int(p.Shape.Parameters())
		writeShape(w, &p.Shape)
		w.Close('}')
	}
	w.Close(']')
	w.Key("devices").Open('[')
	for _, k := range hardware.All() {
		w.Open('{')
		w.Key("name").String(k.Name)
		w.Key("title").String(k.Title)
		if w.Key("memory"); k.Memory.Known() {
			w.Int(k.Memory.Value)
		} else {
			w.Null()
		}
		w.Key("per_node").Int(int64(k.PerNode))
		w.Close('}')
	}
	w.Close(']')
	return envelope.End(w, nil)
}

// Diagram draws a diagram document of a kind that the page uses, at most width pixels
// wide. The code of all kinds would add 28 KB to the compressed module:
//
//	{"svg":"…","error":null}
func Diagram(text []byte, width int) []byte {
	d, err := diagrams.DrawOf(text, diagrams.Collective, diagrams.Matmul, diagrams.Memory, diagrams.Pipeline)
	w := envelope.Begin()
	if w.Key("svg"); err != nil {
		w.Null()
	} else {
		w.String(d.SVG(width))
	}
	return envelope.End(w, err)
}
