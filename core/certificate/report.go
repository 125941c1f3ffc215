package certificate

import "encoding/json"

// report is the JSON form of a coverage.
type report struct {
	First     [2]int64      `json:"first"` // epoch, position
	Last      [2]int64      `json:"last"`
	Delivered [][4]int64    `json:"delivered"` // epoch, epochs, first, last
	Dropped   [][4]int64    `json:"dropped"`
	Skipped   [][4]int64    `json:"skipped"`
	Missing   [][4]int64    `json:"missing"`
	Absent    []reportFault `json:"absent"`
	Repeated  []reportFault `json:"repeated"`
	Text      string        `json:"text"`
}

type reportFault struct {
	Processes [][2]int64 `json:"processes"` // [start, stop) of process numbers
	Positions [][4]int64 `json:"positions"`
}

// Report gives the coverage of the positions from first to last as JSON, and
// with it what String gives:
//
//	{"first":[0,0],"last":[3,64],"delivered":[[0,3,0,1792],[3,1,0,64]],"dropped":[[0,3,1792,1797]],"skipped":[],
//	"missing":[],"absent":[{"processes":[[1,2]],"positions":[[0,1,0,64]]}],"repeated":[],"text":"…"}
func (c Certificate) Report(first, last Place) ([]byte, error) {
	if err := c.checkRange(first, last); err != nil {
		return nil, err
	}
	coverage, err := c.Coverage(first, last)
	if err != nil {
		return nil, err
	}
	return json.Marshal(report{
		First: [2]int64{first.Epoch, first.Position}, Last: [2]int64{last.Epoch, last.Position},
		Delivered: numbers(coverage.Delivered), Dropped: numbers(coverage.Dropped), Skipped: numbers(coverage.Skipped),
		Missing: numbers(coverage.Missing), Absent: reportFaults(coverage.Absent), Repeated: reportFaults(coverage.Repeated),
		Text: c.String(),
	})
}

func reportFaults(faults []Fault) []reportFault {
	list := []reportFault{}
	for _, f := range faults {
		list = append(list, reportFault{pairs(f.Processes), numbers(f.Spans)})
	}
	return list
}
