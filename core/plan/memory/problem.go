package memory

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The codes of problems, in addition to the codes of package sharding. After the semicolon,
// the comments list the keys of Problem.Facts.
const (
	TooLarge       = "too-large"       // a sum exceeds jsontext.MaxInteger, the largest integer of a report
	DeviceCapacity = "device-capacity" // a device has less memory than the step needs; facts bytes, capacity
	Replicated     = "replicated"      // an axis holds copies of an array that it could partition; facts bytes, devices
)

// Codes lists the codes of problems.
func Codes() []problem.Code {
	return []problem.Code{
		sharding.UnknownAxis, sharding.DuplicateAxis, sharding.SpecRank, sharding.Indivisible,
		TooLarge, DeviceCapacity, Replicated,
	}
}

// Err returns the first problem of severity Error, or nil.
func (u *Usage) Err() error {
	for _, p := range u.Problems {
		if p.Severity == problem.Error {
			return p.Err("memory")
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
	u.Problems = append(u.Problems, problem.Problem{Severity: problem.Error, Code: f.Code, Path: at, Message: f.Message, Hint: f.Hint, Facts: f.Facts})
}

// check reports sums beyond the limits and the capacity, and copies that waste memory.
// Method rows has reported the specs that do not fit.
func (u *Usage) check() {
	t, most := u.Totals, u.Totals.Stored
	if t.Peak != nil {
		most = t.Peak.High
	}
	if max(most, amount.Sum(t.Stored, t.Gradients), t.Host, t.Count) > jsontext.MaxInteger {
		u.Problems = append(u.Problems, problem.Problem{Severity: problem.Error, Code: TooLarge, Path: "/arrays",
			Message: "the arrays take more than 2^53 bytes of a device", Hint: "make them smaller"})
		return
	}
	u.checkCapacity(most)
	u.checkReplicated()
}

// checkCapacity reports a device with less memory than the step may need, which is
// at most the given number of bytes.
func (u *Usage) checkCapacity(most int64) {
	least, capacity := u.Totals.Stored, u.Tree.Capacity
	if u.Totals.Peak != nil {
		least = u.Totals.Peak.Low
	}
	if capacity == 0 || most <= capacity {
		return
	}
	text, has := sizes(least, capacity)
	p := problem.Problem{Severity: problem.Error, Code: DeviceCapacity, Path: "/capacity_bytes",
		Message: fmt.Sprintf("a step needs at least %s of a device, which has %s", text, has),
		Hint:    "partition the arrays over more axes, or use more devices",
		Facts:   []problem.Fact{{Name: "bytes", Value: least}, {Name: "capacity", Value: capacity}}}
	if least <= capacity {
		text, has = sizes(most, capacity)
		p.Severity, p.Facts[0].Value = problem.Warning, most
		p.Message = fmt.Sprintf("a step needs up to %s of a device, which has %s", text, has)
		p.Hint = "the compiler decides: compile the step, or use a smaller batch"
	}
	u.Problems = append(u.Problems, p)
}

// sizes writes two different sizes so that the difference shows.
func sizes(a, b int64) (textA, textB string) {
	textA, textB = wording.Bytes(a), wording.Bytes(b)
	if textA == textB {
		return wording.Count(a, "byte", "bytes"), wording.Count(b, "byte", "bytes")
	}
	return textA, textB
}
