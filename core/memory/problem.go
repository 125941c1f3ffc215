package memory

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The severities of problems.
const (
	Error   = "error"   // the step cannot run
	Warning = "warning" // the step may run, but is probably not what was meant
)

// The codes of problems, beside those of package sharding. The comments end with
// the names of the facts.
const (
	TooLarge       = "too-large"       // sizes beyond 2^53 bytes
	DeviceCapacity = "device-capacity" // a device has less memory than the step needs; facts bytes, capacity
	Replicated     = "replicated"      // an axis holds copies of an array that it could partition; facts bytes, devices
)

// maxBytes is the largest size that a report has: JSON holds it exactly.
const maxBytes = 1 << 53

// Problem is an error in a tree, or something worth knowing about it.
type Problem struct {
	Severity string
	Code     string
	Path     string // JSON Pointer into the document
	Message  string // what was expected, and what was found
	Hint     string // what to do
	Facts    []sharding.Fact
}

// Err returns the problem as an InvalidArgument error.
func (p Problem) Err() error {
	e := status.New(status.InvalidArgument, "memory", p.Message).With("code", p.Code).With("path", p.Path)
	e.Hint = p.Hint
	for _, f := range p.Facts {
		e = e.With(f.Name, f.Value)
	}
	return e
}

// Err returns the first problem of severity Error, or nil.
func (u *Usage) Err() error {
	for _, p := range u.Problems {
		if p.Severity == Error {
			return p.Err()
		}
	}
	return nil
}

func (u *Usage) addFault(path string, f sharding.Fault) {
	at := jsontext.Element(path+"/spec", f.Dimension)
	switch f.Code {
	case sharding.SpecRank:
		at = path + "/spec"
	case sharding.Indivisible:
		at = jsontext.Element(path+"/shape", f.Dimension)
	}
	u.Problems = append(u.Problems, Problem{Error, f.Code, at, f.Message, f.Hint, f.Facts})
}

// check reports sizes beyond the limits and the capacity, and copies that waste
// memory. Method rows has reported the specs.
func (u *Usage) check() {
	t := u.Totals
	if t.Peak.High > maxBytes {
		u.Problems = append(u.Problems, Problem{Severity: Error, Code: TooLarge, Path: "/arrays", Message: "the arrays take more than 2^53 bytes of a device", Hint: "make them smaller"})
		return
	}
	if c := u.Tree.Capacity; c > 0 && t.Peak.High > c {
		p := Problem{Severity: Warning, Code: DeviceCapacity, Path: "/capacity_bytes", Facts: []sharding.Fact{{Name: "bytes", Value: t.Peak.High}, {Name: "capacity", Value: c}},
			Message: fmt.Sprintf("a step needs up to %s of a device, which has %s", wording.Bytes(t.Peak.High), wording.Bytes(c)),
			Hint:    "whether it fits depends on the compiler: use a smaller batch, or partition over more axes"}
		if t.Peak.Low > c {
			p.Severity, p.Facts[0].Value = Error, t.Peak.Low
			p.Message = fmt.Sprintf("a step needs at least %s of a device, which has %s", wording.Bytes(t.Peak.Low), wording.Bytes(c))
			p.Hint = "partition the arrays over more axes, or use more devices"
		}
		u.Problems = append([]Problem{p}, u.Problems...)
	}
	u.checkReplicated()
}
