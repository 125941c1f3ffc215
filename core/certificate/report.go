package certificate

import "github.com/meshfeed/meshfeed/internal/jsontext"

// Report returns the coverage of the positions from first to last as JSON,
// together with the text that String returns:
//
//	{"first":[0,0],"last":[3,64],"delivered":[[0,3,0,1792],[3,1,0,64]],"dropped":[[0,3,1792,1797]],"skipped":[],
//	"missing":[],"absent":[{"processes":[[1,2]],"positions":[[0,1,0,64]]}],"repeated":[],"text":"…"}
func (c Certificate) Report(first, last Cursor) ([]byte, error) {
	if err := c.checkRange(first, last); err != nil {
		return nil, err
	}
	coverage, err := c.Coverage(first, last)
	if err != nil {
		return nil, err
	}
	w := &jsontext.Writer{}
	w.Open('{')
	w.Key("first").Ints(int(first.Epoch), int(first.Position))
	w.Key("last").Ints(int(last.Epoch), int(last.Position))
	writePositions(w, coverage.Delivered, coverage.Dropped, coverage.Skipped)
	writeSpans(w.Key("missing"), coverage.Missing)
	writeFaults(w.Key("absent"), coverage.Absent)
	writeFaults(w.Key("repeated"), coverage.Repeated)
	w.Key("text").String(c.String())
	w.Close('}')
	return w.Text, nil
}

func writeFaults(w *jsontext.Writer, faults []Fault) {
	w.Open('[')
	for _, f := range faults {
		w.Open('{')
		writeProcesses(w.Key("processes"), f.Processes)
		writeSpans(w.Key("positions"), f.Spans)
		w.Close('}')
	}
	w.Close(']')
}
