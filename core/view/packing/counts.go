package packing

import (
	"encoding/json"
	"slices"
)

// counts are what [New] finds by reading all lengths.
type counts struct {
	Report Report  `json:"report"`
	Group  int64   `json:"group"`
	Rows   int64   `json:"rows"`
	Most   int     `json:"most"`
	Before []int64 `json:"before"`
}

// Counts returns a text from which [Restore] makes the plan without reading lengths.
func (p *Plan) Counts() []byte {
	text, err := json.Marshal(counts{p.report, p.options.Group, p.rows, p.most, p.before})
	if err != nil {
		panic("packing: counts are no JSON: " + err.Error())
	}
	return text
}

// Restore returns the plan that New returned for the same documents and options, or nil if the text is
// not one that Counts has made.
func Restore(documents int64, lengths Lengths, o Options, text []byte) *Plan {
	o.setDefaults()
	var c counts
	if json.Unmarshal(text, &c) != nil || o.check() != nil || c.Group < 1 || c.Group > maxGroup {
		return nil
	}
	o.Group = c.Group
	p := &Plan{options: o, documents: documents, lengths: lengths, report: c.Report, rows: c.Rows, most: c.Most, before: c.Before}
	groups := (documents + o.Group - 1) / o.Group
	if int64(len(c.Before)) != groups+1 || c.Before[0] != 0 || !slices.IsSorted(c.Before) || c.Report.Documents != documents || c.Report.Name != p.Name() || c.Rows != p.countRows() {
		return nil
	}
	return p
}
