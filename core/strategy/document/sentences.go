package document

import (
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/strategy"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// section is a part of a report in words.
type section struct {
	title string
	lines []line
}

// line is a paragraph under a mark, such as the number of a candidate.
type line struct{ mark, text string }

// question writes what was asked, how many candidates there are, and what is wrong.
func question(d *strategy.Document, r *strategy.Report) []string {
	size := wording.Thousands(r.Model.Parameters) + " parameters"
	if r.Model.ActiveParameters != r.Model.Parameters {
		size += ", " + wording.Thousands(r.Model.ActiveParameters) + " active"
	}
	on := wording.Count(int64(r.Devices), "device", "devices")
	if d.Cluster.Device != "" {
		on = wording.Thousands(int64(r.Devices)) + " × " + wording.Plain(d.Cluster.Device)
	}
	batch := wording.Count(d.Training.Batch, "example", "examples")
	if d.Training.Tokens > 0 {
		batch = wording.Count(d.Training.Tokens, "token", "tokens")
	}
	count := wording.Count(r.Evaluated, "candidate", "candidates") + " on " + wording.Count(r.Meshes, "mesh", "meshes")
	if r.Best < 0 {
		count += "; none fits"
	}
	lines := []string{
		wording.Plain(r.Model.Name) + ": " + size + ", on " + on,
		"a step trains on " + batch + "; evaluated: " + count,
	}
	for _, f := range r.Problems {
		text := string(f.Severity) + ": " + f.Message
		if f.Hint != "" {
			text += "; " + f.Hint
		}
		lines = append(lines, text)
	}
	return lines
}

// caption names the units of the table of candidates.
func caption(u timeUnit) string {
	return "GB (10^9 bytes) per device, and " + u.name + " per step (expected, from best to worst case)"
}

// sections writes all that follows the table of candidates.
func sections(r *strategy.Report) []section {
	all := []section{{"Why", reasons(r)}, {"Not evaluated", pruned(r)}}
	if r.Best >= 0 {
		number := strconv.Itoa(r.Best + 1)
		all = append(all, section{"A step of " + number, step(r)}, section{"Input of " + number, input(r)})
	}
	all = append(all, section{"Assumptions", assumptions(r)})
	var some []section
	for _, s := range all {
		if len(s.lines) > 0 {
			some = append(some, s)
		}
	}
	return some
}

// indented makes lines without a mark of their own.
func indented(texts ...string) (lines []line) {
	for _, text := range texts {
		lines = append(lines, line{"  ", text})
	}
	return lines
}

// reason says why a candidate has its rank.
func reason(r *strategy.Report, i int) string {
	list := r.Candidates[i].Reasons
	if i == r.Best {
		list = append([]string{"the best"}, list...)
	}
	return strings.Join(list, "; ")
}

func reasons(r *strategy.Report) (lines []line) {
	width := len(strconv.Itoa(len(r.Candidates)))
	for i := range r.Candidates {
		if text := reason(r, i); text != "" {
			number := strconv.Itoa(i + 1)
			lines = append(lines, line{strings.Repeat(" ", width-len(number)) + number + " ", text})
		}
	}
	return lines
}

func pruned(r *strategy.Report) []line {
	var texts []string
	for _, s := range r.Pruned {
		texts = append(texts, wording.Count(s.Count, "mesh", "meshes")+": "+s.Message)
	}
	return indented(texts...)
}

// step writes the parts of the best candidate's step, its collectives and its stages.
func step(r *strategy.Report) []line {
	var texts []string
	if t := r.Candidates[r.Best].Time; t != nil {
		texts = append(texts, timeParts(t), bound(t))
	}
	for i := range r.Collectives {
		texts = append(texts, collective(&r.Collectives[i]))
	}
	if len(r.Stages) > 1 {
		texts = append(texts, stages(r.Stages)...)
	}
	return indented(texts...)
}

func timeParts(t *strategy.Time) string {
	var sum []string
	for _, part := range parts(t) {
		if part.value > 0 {
			sum = append(sum, part.key+" "+duration(part.value))
		}
	}
	text := strings.Join(sum, " + ")
	if t.Hidden > 0 {
		text += " − " + duration(t.Hidden) + " of communication during computation"
	}
	return text + " = " + duration(t.Step)
}

func bound(t *strategy.Time) string {
	text := "bound by " + t.Bound
	if t.Next != "" {
		text += "; " + t.Next + " is " + duration(t.Behind) + " shorter"
	}
	switch {
	case t.TokensPerSecond > 0:
		text += "; " + wording.Thousands(t.TokensPerSecond) + " tokens per second"
	case t.ExamplesPerSecond >= 1000:
		text += "; " + wording.Thousands(t.ExamplesPerSecond/1000) + " examples per second"
	}
	if t.MFU > 0 {
		text += "; " + percent(t.MFU) + " of the peak FLOP/s"
	}
	return text
}

func collective(c *strategy.Collective) string {
	text := c.Axis + ": " + wording.Thousands(c.Count) + " × " + c.Op
	if c.What != "" {
		text += " of " + c.What
	}
	text += " (" + gigabytes(c.Bytes) + noBreak + "GB) over " + c.Link + " links: a device sends " + gigabytes(c.Sent) + noBreak + "GB"
	if c.Ns >= 0 {
		text += " in " + duration(c.Ns)
	}
	if c.Overlapped {
		text += ", during computation"
	}
	return text
}

// stages writes the stages of a pipeline. Neighbors that differ in nothing that is
// written share a line.
func stages(list []strategy.Stage) (texts []string) {
	describe := func(s *strategy.Stage) string {
		text := wording.Count(int64(s.Layers), "layer", "layers")
		if s.Embedding {
			text += " and the embedding"
		}
		if s.Head {
			text += " and the head"
		}
		return text + ", " + gigabytes(s.Memory.Total) + noBreak + "GB, " + wording.Count(int64(s.Live), "live micro-batch", "live micro-batches")
	}
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && describe(&list[to]) == describe(&list[from]) {
			to++
		}
		number := "stage " + strconv.Itoa(list[from].Number)
		if to > from+1 {
			number = "stages " + strconv.Itoa(list[from].Number) + " to " + strconv.Itoa(list[to-1].Number)
		}
		texts = append(texts, number+": "+describe(&list[from]))
		from = to
	}
	return texts
}

func input(r *strategy.Report) []line {
	n := r.Input
	if n == nil {
		return nil
	}
	rows := wording.Count(n.RowsPerStep, "row", "rows") + " per step, " + wording.Bytes(n.BytesPerStep)
	if n.RowsPerSecond >= 0 {
		rows += "; " + decimal(n.RowsPerSecond) + " rows per second"
	}
	processes := wording.Count(int64(n.Processes), "process reads", "processes read") + " up to " + wording.Count(n.ProcessRows, "row", "rows") + ", " +
		wording.Bytes(n.ProcessBytes) + " per step each; " + wording.Bytes(n.HostBytes) + " of host memory"
	if n.Sharing > 1 {
		processes += "; " + wording.Thousands(int64(n.Sharing)) + " processes read the same rows"
	}
	texts := []string{rows, processes}
	if n.Available > 0 && n.RowsPerSecond >= 0 {
		texts = append(texts, available(n))
	}
	return indented(texts...)
}

// available says whether the input keeps up.
func available(n *strategy.InputNeeds) string {
	text := "the input delivers " + wording.Thousands(n.Available) + " rows per second"
	if n.Margin > 0 {
		text += ", " + decimal(n.Margin) + " times what a step needs"
	}
	if n.KeepsUp {
		return text + ": it keeps up"
	}
	return text + ": it does not keep up"
}

func assumptions(r *strategy.Report) []line {
	var texts []string
	for _, a := range r.Assumptions {
		texts = append(texts, a.Code+": "+a.Text)
	}
	return indented(texts...)
}
