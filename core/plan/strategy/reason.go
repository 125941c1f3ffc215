package strategy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// reasons says why the current candidate has its rank. best is the first candidate of
// the ranking, and nil for that itself.
func (e *evaluator) reasons(c, best *Candidate) []string {
	switch {
	case !c.Fits:
		return e.misfit(c)
	case c.Time == nil:
		reason, _ := e.missingNumber()
		return []string{"its time is not known, because " + reason}
	case best == nil || best.Time == nil:
		return []string{"the fastest that fits, bound by " + PartName(c.Time.Bound)}
	}
	return []string{e.slower(c, best)}
}

// PartName returns the name of a part of a step for readers. code is its name in JSON,
// as in [Time.Bound].
func PartName(code string) string {
	if code == "hbm" {
		return "memory traffic"
	}
	return code
}

// misfit says what does not fit.
func (e *evaluator) misfit(c *Candidate) []string {
	m := &c.Memory
	name, bytes := m.largest()
	needs := fmt.Sprintf("needs %s, but a device has %s", gigabytes(m.Total), gigabytes(m.Capacity))
	if m.Total <= m.Capacity {
		needs = fmt.Sprintf("needs %s of %s, of which %s stay free", gigabytes(m.Total), gigabytes(m.Capacity), gigabytes(m.Capacity-e.planner.capacity))
	}
	if e.planner.misses(m) {
		needs = "near: " + needs
	}
	list := []string{fmt.Sprintf("%s: %s are %s", needs, gigabytes(bytes), name)}
	if n := e.sizes[fsdpAxis]; n > 1 && e.model.shape != nil && e.blocks[denseBlock].gather+e.blocks[expertBlock].gather == 0 {
		list = append(list, fmt.Sprintf("fsdp %d divides no dimension of the arrays of a layer, so every device holds them whole; use a divisor of the width", n))
	}
	if low := m.least(); low <= e.planner.capacity {
		list = append(list, fmt.Sprintf("may fit: needs %s if layers keep only the results of matrix products", gigabytes(low)))
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

// Most returns the total with ActivationsHigh.
func (m *Memory) Most() int64 { return amount.Sum(m.Total-m.Activations, m.ActivationsHigh) }

// least returns the total with ActivationsLow.
func (m *Memory) least() int64 { return m.Total - m.Activations + m.ActivationsLow }

// exceeds reports whether the upper bound of the memory does not fit.
func (p *planner) exceeds(m *Memory) bool { return m.Capacity > 0 && m.Most() > p.capacity }

// misses reports whether a candidate that does not fit is near: it needs less than 10 %
// more than it may take. Memory has an uncertainty of that size, because libraries free
// arrays at different times.
func (p *planner) misses(m *Memory) bool {
	over := m.Total - p.capacity
	return over > 0 && over < p.capacity/10
}

// slower says where a candidate loses the most time against the best one.
func (e *evaluator) slower(c, best *Candidate) string {
	if near(c.Time.Step, e.planner.fastest) && e.planner.exceeds(&c.Memory) == e.planner.exceeds(&best.Memory) {
		return e.equal(c, best)
	}
	if e.planner.exceeds(&c.Memory) && !e.planner.exceeds(&best.Memory) {
		return fmt.Sprintf("fits with fused kernels only: needs up to %s without them; %s", gigabytes(c.Memory.Most()), longer(c, best))
	}
	part, more := c.Time.more(best.Time, &e.overlap)
	text := longer(c, best) + ": "
	switch {
	case part == "compute" && c.Recomputation == Full && best.Recomputation != Full:
		return text + "full recomputation runs the forward pass of every layer twice"
	case part == "compute" && e.sizes[pipeAxis] > 1:
		return text + seconds(more) + " more of computation in the slowest stage"
	case part == "compute":
		return text + seconds(more) + " more of computation"
	case part == "bubble":
		return text + fmt.Sprintf("stages are idle for %d %% of the step", (100*c.Time.Bubble+c.Time.Step/2)/c.Time.Step)
	case part == "hbm":
		return text + seconds(more) + " more of memory traffic"
	}
	return text + fmt.Sprintf("%s more of communication over %s%s", seconds(more), part, e.crossing(part))
}

// longer compares the time of a candidate with the best candidate's time.
func longer(c, best *Candidate) string {
	times := strconv.FormatFloat(float64(c.Time.Step)/float64(best.Time.Step), 'f', 2, 64)
	if times == "1.00" && c.Time.Step >= best.Time.Step {
		return "takes less than 1 % longer"
	}
	return "takes " + times + " times as long"
}

// equal says why a candidate that is as fast as the best one comes after it.
func (e *evaluator) equal(c, best *Candidate) string {
	const same = "as fast, but "
	switch {
	case len(c.Mesh) > len(best.Mesh):
		return same + "with " + wording.Count(int64(len(c.Mesh)), "axis", "axes") + " instead of " + strconv.Itoa(len(best.Mesh))
	case c.Time.High > best.Time.High && seconds(c.Time.High) != seconds(best.Time.High):
		return same + fmt.Sprintf("takes up to %s instead of %s in the worst case", seconds(c.Time.High), seconds(best.Time.High))
	case c.Memory.Total > best.Memory.Total && gigabytes(c.Memory.Total) != gigabytes(best.Memory.Total):
		return same + fmt.Sprintf("needs %s instead of %s", gigabytes(c.Memory.Total), gigabytes(best.Memory.Total))
	case c.MicroBatches > best.MicroBatches:
		return same + fmt.Sprintf("with %d micro-batches instead of %d", c.MicroBatches, best.MicroBatches)
	case !slices.Equal(c.Mesh, best.Mesh):
		return "as fast; between equal times, data comes before fsdp, then tensor and pipe"
	case c.Chunks > best.Chunks:
		return same + fmt.Sprintf("with %d chunks of layers per stage instead of %d", c.Chunks, best.Chunks)
	case c.ZeRO != best.ZeRO:
		return same + fmt.Sprintf("with stage %d of ZeRO instead of %d", c.ZeRO, best.ZeRO)
	}
	return same + "with " + c.Recomputation + " recomputation"
}

// crossing returns a remark if an axis communicates between nodes.
func (e *evaluator) crossing(name string) string {
	switch tier := e.paths[axisOf(name)].Tier(); {
	case tier == hardware.AcrossNodes || tier == hardware.Mixed:
		return ", which crosses nodes"
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
	digits := 2
	for limit := 10.0; digits > 0 && f >= limit; limit *= 10 {
		digits--
	}
	text := strconv.FormatFloat(f, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + unit
}

func seconds(ns int64) string { return wording.Seconds(ns) }
