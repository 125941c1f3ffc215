package strategy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/hardware"
)

// reasons says why the current candidate has its rank. best is the first candidate of
// the ranking, and nil for that itself.
func (e *evaluator) reasons(c, best *Candidate) []string {
	switch {
	case !c.Fits:
		return e.misfit(c)
	case c.Time == nil:
		name, _ := e.unknown()
		return append([]string{"its time is not known, because " + name + " is missing"}, e.tight(c)...)
	case best == nil || best.Time == nil:
		return append([]string{"the fastest that fits, bound by " + c.Time.Bound}, e.tight(c)...)
	}
	return append([]string{e.slower(c, best)}, e.tight(c)...)
}

// misfit says what does not fit.
func (e *evaluator) misfit(c *Candidate) []string {
	m := &c.Memory
	name, bytes := m.largest()
	form := "needs %s, but a device has %s: %s are %s"
	if m.Total <= m.Capacity {
		form = "needs %s of %s, which leaves less than the margin: %s are %s"
	}
	list := []string{fmt.Sprintf(form, gigabytes(m.Total), gigabytes(m.Capacity), gigabytes(bytes), name)}
	if n := e.sizes[fsdpAxis]; n > 1 && e.model.shape != nil && e.weights[denseBlock].gather+e.weights[expertBlock].gather == 0 {
		list = append(list, fmt.Sprintf("fsdp %d divides no dimension of the arrays of a layer, so every device holds them whole; use a divisor of the width", n))
	}
	if low := m.Total - m.Activations + m.ActivationsLow; low <= e.planner.capacity {
		list = append(list, fmt.Sprintf("may fit: needs %s with the least activations that a compiler can keep", gigabytes(low)))
	}
	return list
}

func (m *Memory) largest() (name string, bytes int64) {
	for _, x := range []struct {
		name  string
		bytes int64
	}{{"weights", m.Weights}, {"gradients", m.Gradients}, {"states of the optimizer", m.Optimizer}, {"activations", m.Activations}, {"buffers", m.Buffers}} {
		if x.bytes > bytes {
			name, bytes = x.name, x.bytes
		}
	}
	return name, bytes
}

// tight returns a warning if a candidate fits by the formula, but not by its upper bound.
func (e *evaluator) tight(c *Candidate) []string {
	if !e.exceeds(&c.Memory) {
		return nil
	}
	return []string{fmt.Sprintf("tight: needs up to %s without fused kernels", gigabytes(c.Memory.most()))}
}

// most returns the total with the most activations.
func (m *Memory) most() int64 { return plus(m.Total-m.Activations, m.ActivationsHigh) }

// exceeds reports whether the most activations do not fit.
func (e *evaluator) exceeds(m *Memory) bool {
	return m.Capacity > 0 && m.most() > e.planner.capacity
}

// slower says where a candidate loses the most time against the best one.
func (e *evaluator) slower(c, best *Candidate) string {
	if rough(c.Time.Step) == rough(best.Time.Step) {
		return e.equal(c, best)
	}
	times := strconv.FormatFloat(float64(c.Time.Step)/float64(best.Time.Step), 'f', 2, 64)
	part, more := c.Time.more(best.Time, &e.planner.overlap)
	text := times + " times slower: "
	if times == "1.00" {
		text = "less than 1 % slower: "
	}
	switch {
	case part == "compute" && c.Recomputation == Full && best.Recomputation != Full:
		return text + "full recomputation runs the forward pass of every layer twice"
	case part == "compute":
		return text + fmt.Sprintf("computation takes %s more", seconds(more))
	case part == "bubble":
		return text + fmt.Sprintf("stages are idle for %d %% of the step", (100*c.Time.Bubble+c.Time.Step/2)/c.Time.Step)
	case part == "hbm":
		return text + fmt.Sprintf("memory traffic takes %s more", seconds(more))
	}
	return text + fmt.Sprintf("communication of %s takes %s more%s", part, seconds(more), e.crossing(part))
}

// equal says why a candidate that is as fast as the best one comes after it.
func (e *evaluator) equal(c, best *Candidate) string {
	switch {
	case e.exceeds(&c.Memory) && !e.exceeds(&best.Memory):
		return "as fast, but with less memory to spare"
	case len(c.Mesh) > len(best.Mesh):
		return "as fast, but with more axes"
	case c.Time.High > best.Time.High && seconds(c.Time.High) != seconds(best.Time.High):
		return fmt.Sprintf("as fast, but takes up to %s instead of %s if nothing overlaps", seconds(c.Time.High), seconds(best.Time.High))
	case c.Memory.Total > best.Memory.Total && gigabytes(c.Memory.Total) != gigabytes(best.Memory.Total):
		return fmt.Sprintf("as fast, but needs %s instead of %s", gigabytes(c.Memory.Total), gigabytes(best.Memory.Total))
	case c.MicroBatches > best.MicroBatches:
		return "as fast, but with more micro-batches"
	}
	return "as fast, but the ranking prefers data, then fsdp, tensor and pipe"
}

// crossing returns a remark if an axis communicates between nodes.
func (e *evaluator) crossing(name string) string {
	switch tier := e.paths[axisOf(name)].Tier(); {
	case tier == hardware.AcrossNodes || tier == hardware.Mixed:
		return ", and crosses nodes"
	}
	return ""
}

// more returns the part of a step that exceeds the same part of best by the largest
// time, and this time. It compares the parts that exposed returns.
func (t *Time) more(best *Time, overlap *[numAxes]bool) (name string, ns int64) {
	mine, others := t.exposed(overlap), best.exposed(overlap)
	for i, x := range mine {
		if d := x.ns - others[i].ns; i == 0 || d > ns {
			name, ns = x.name, d
		}
	}
	return name, ns
}

// exposed returns the parts without hidden time. It subtracts the hidden time from the
// axes that overlap with computation, beginning with the shortest part.
func (t *Time) exposed(overlap *[numAxes]bool) [9]timePart {
	parts, hidden := t.parts(), t.Hidden
	for hidden > 0 {
		least := -1
		for i, x := range parts {
			if a := axisOf(x.name); a >= 0 && overlap[a] && x.ns > 0 && (least < 0 || x.ns < parts[least].ns) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		n := min(hidden, parts[least].ns)
		parts[least].ns -= n
		hidden -= n
	}
	return parts
}

// gigabytes writes bytes with three digits in the unit of data sheets, 10^9.
func gigabytes(n int64) string {
	unit, f := " GB", float64(n)/1e9
	switch {
	case f >= 1000:
		unit, f = " TB", f/1000
	case f < 1:
		unit, f = " MB", f*1000
	}
	digits := 1
	if f >= 100 {
		digits = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', digits, 64), ".0") + unit
}

// seconds writes a time with three digits.
func seconds(ns int64) string {
	unit, f := " s", float64(ns)/1e9
	switch {
	case ns < 1_000_000:
		unit, f = " µs", float64(ns)/1e3
	case ns < 1_000_000_000:
		unit, f = " ms", float64(ns)/1e6
	}
	return strconv.FormatFloat(f, 'g', 3, 64) + unit
}
