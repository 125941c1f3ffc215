package document

import (
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// gigabytes writes bytes in GB of 10^9 with at most five characters: "0.02", "2.0",
// "-71.2", "1234", "12k".
func gigabytes(n int64) string {
	const gb = 1_000_000_000
	switch {
	case n < 0 && n > -gb/100:
		return "-0.01" // not 0, because the candidate does not fit
	case n < 0:
		return "-" + gigabytes(-n)
	case n >= 1000*gb:
		return short((n + gb/2) / gb)
	case n >= 100*gb:
		return strconv.FormatInt((n+gb/2)/gb, 10)
	case n >= gb:
		return rounded(n, gb, 1)
	case n == 0:
		return "0"
	}
	text := rounded(n, gb, 2)
	if text == "0.00" {
		return "<0.01"
	}
	return text
}

// rounded writes n / unit with a number of decimals, rounded half up.
func rounded(n, unit int64, decimals int) string {
	scale := int64(1)
	for range decimals {
		scale *= 10
	}
	step := unit / scale
	n = (n + step/2) / step
	text := strconv.FormatInt(n, 10)
	if decimals == 0 {
		return text
	}
	text = strings.Repeat("0", max(0, decimals+1-len(text))) + text
	return text[:len(text)-decimals] + "." + text[len(text)-decimals:]
}

// short writes a count with at most four characters: "9999", "10k", "999M".
func short(n int64) string {
	if n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	for _, unit := range []string{"k", "M", "G", "T"} {
		n = (n + 500) / 1000
		if n < 1000 {
			return strconv.FormatInt(n, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + "T"
}

// timeUnit is the unit of a column of times.
type timeUnit struct {
	name string
	ns   int64
}

var timeUnits = []timeUnit{{"hours", 3_600_000_000_000}, {"seconds", 1_000_000_000}, {"ms", 1_000_000}, {"µs", 1000}}

// unitOf returns the unit of the columns of times of a report: the largest unit that
// makes the first time at least 1.
func unitOf(r *strategy.Report) timeUnit {
	for i := range r.Candidates {
		if t := r.Candidates[i].Time; t != nil {
			return unitFor(t.Step)
		}
	}
	return timeUnit{"seconds", 1_000_000_000}
}

func unitFor(ns int64) timeUnit {
	for _, u := range timeUnits {
		if ns >= u.ns {
			return u
		}
	}
	return timeUnits[len(timeUnits)-1]
}

// text writes a time with three significant digits, and at most five characters.
func (u timeUnit) text(ns int64) string {
	switch {
	case ns >= 100*u.ns:
		return short((ns + u.ns/2) / u.ns)
	case ns >= 10*u.ns:
		return rounded(ns, u.ns, 1)
	}
	return rounded(ns, u.ns, 2)
}

// duration writes a time with its unit: "12.9 s".
func duration(ns int64) string {
	u := unitFor(ns)
	name := map[string]string{"seconds": "s", "hours": "h"}[u.name]
	if name == "" {
		name = u.name
	}
	return u.text(ns) + noBreak + name
}

// decimal writes an integer of thousandths, with thousands separators and at most
// three decimals.
func decimal(thousandths int64) string {
	if thousandths >= 100_000 {
		return wording.Thousands((thousandths + 500) / 1000)
	}
	return string(jsontext.AppendFixed(nil, thousandths))
}

// percent writes thousandths as a percentage: "45.2 %".
func percent(thousandths int64) string {
	return string(jsontext.AppendFixed(nil, thousandths*100)) + noBreak + "%"
}
