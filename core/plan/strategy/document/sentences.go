package document

import (
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// section is a part of a report: sentences, or a table with the heading as its first row.
type section struct {
	title string
	lines []line
	rows  [][]string
	sides string // how each column is aligned: "l" left, "r" right
}

// line is a paragraph. Before it stands a mark, such as the number of a candidate.
type line struct{ mark, text string }

// question writes the model, the devices and the batch.
func question(d *strategy.Document, r *strategy.Report) string {
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
	name := wording.Plain(r.Model.Name) + ": "
	if d.Model.Preset == "" {
		name = "a model with "
	}
	return name + size + ", on " + on + "; " + batch + " per step"
}

// answer writes the best candidate.
func answer(r *strategy.Report) string {
	if r.Best < 0 {
		return tried(r)
	}
	c := &r.Candidates[r.Best]
	text := tried(r) + ": " + strategy.MeshText(c.Mesh) + ", " + settings(c) + ": " + gigabytes(c.Memory.Total) + noBreak + "GB"
	if c.Memory.Capacity > 0 {
		text += " of " + gigabytes(c.Memory.Capacity) + noBreak + "GB"
	}
	text += " per device"
	if c.Time != nil {
		text += ", " + duration(c.Time.Step) + " per step"
	}
	return text
}

// tried writes how many candidates were compared.
func tried(r *strategy.Report) string {
	count := wording.Count(r.Evaluated, "candidate", "candidates") + " on " + wording.Count(r.Meshes, "mesh", "meshes")
	if r.Best < 0 {
		return "no candidate fits; tried: " + count
	}
	return "best of " + count
}

// settings writes the settings of a candidate besides its mesh.
func settings(c *strategy.Candidate) string {
	return "recomputation " + c.Recomputation + ", " + wording.Count(int64(c.MicroBatches), "micro-batch", "micro-batches") + " of " +
		wording.Count(int64(c.MicroBatch), "example", "examples")
}

// padded adds spaces before a text, up to a width in characters.
func padded(text string, width int) string {
	return strings.Repeat(" ", width-columnsOf(text)) + text
}

// caption names the units of the table of candidates.
func caption(u timeUnit) string {
	return "GB (10^9 bytes) per device, and " + u.name + " per step"
}

// sections returns the parts of a report after the reasons.
func sections(r *strategy.Report) []section {
	all := []section{{title: "Not evaluated", lines: pruned(r)}}
	if r.Best >= 0 {
		best := "candidate " + strconv.Itoa(r.Best+1)
		all = append(all, section{title: "A step of " + best, lines: step(r)}, section{
			title: "Communication of a device in a step of " + best + ", in GB", rows: collectives(r), sides: "lrllrlrrl",
		}, section{title: "Input of " + best, lines: input(r)})
	}
	all = append(all, section{title: "Assumptions", lines: assumptions(r)})
	var some []section
	for _, s := range all {
		if len(s.lines)+len(s.rows) > 0 {
			some = append(some, s)
		}
	}
	return some
}

// indent is the mark of a line without a number.
const indent = "  "

// indented makes lines without numbers.
func indented(texts ...string) (lines []line) {
	for _, text := range texts {
		lines = append(lines, line{indent, text})
	}
	return lines
}

// reason says why a candidate has its rank.
func reason(r *strategy.Report, i int) string {
	return strings.Join(r.Candidates[i].Reasons, "; ")
}

// reasons lists why each candidate has its rank. Neighbors with the same reasons share
// a line.
func reasons(r *strategy.Report) (lines []line) {
	width := 0
	for from := 0; from < len(r.Candidates); {
		to, text := from+1, reason(r, from)
		for to < len(r.Candidates) && reason(r, to) == text {
			to++
		}
		if text != "" {
			numbers := strconv.Itoa(from + 1)
			if to > from+1 {
				numbers += "–" + strconv.Itoa(to)
			}
			lines, width = append(lines, line{numbers, text}), max(width, columnsOf(numbers))
		}
		from = to
	}
	for i := range lines {
		lines[i].mark = padded(lines[i].mark, width) + " "
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

// step writes the parts of the best candidate's step, and its stages.
func step(r *strategy.Report) []line {
	var texts []string
	if t := r.Candidates[r.Best].Time; t != nil {
		texts = append(texts, timeParts(t), bound(t))
		if text := rates(t); text != "" {
			texts = append(texts, text)
		}
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
			sum = append(sum, strategy.PartName(part.key)+" "+duration(part.value))
		}
	}
	text := duration(t.Step) + " = " + strings.Join(sum, " + ")
	if t.Hidden > 0 {
		text += ", less " + duration(t.Hidden) + " of communication that runs during computation"
	}
	return text
}

func bound(t *strategy.Time) string {
	text := "bound by " + strategy.PartName(t.Bound)
	if t.Next != "" {
		text += "; the next part, " + strategy.PartName(t.Next) + ", takes " + duration(t.Behind) + " less"
	}
	return text
}

// rates writes what a step of this time achieves.
func rates(t *strategy.Time) string {
	var texts []string
	switch {
	case t.TokensPerSecond > 0:
		texts = append(texts, wording.Thousands(t.TokensPerSecond)+" tokens per second")
	case t.ExamplesPerSecond >= 1000:
		texts = append(texts, wording.Thousands(t.ExamplesPerSecond/1000)+" examples per second")
	}
	if t.MFU > 0 {
		texts = append(texts, percent(t.MFU)+" of the peak FLOP/s (MFU)")
	}
	if t.Days >= 0 {
		texts = append(texts, "the whole training takes "+decimal(t.Days)+" days and "+decimal(t.DeviceHours)+" device-hours")
	}
	return strings.Join(texts, "; ")
}

// collectives makes a table of the communication in a step of the best candidate.
func collectives(r *strategy.Report) [][]string {
	if len(r.Collectives) == 0 {
		return nil
	}
	rows := [][]string{{"axis", "calls", "operation", "of", "each", "link", "sent", "time", "overlap"}}
	for i := range r.Collectives {
		c := &r.Collectives[i]
		time, overlaps := unknown, "no"
		if c.Ns >= 0 {
			time = duration(c.Ns)
		}
		if c.Overlapped {
			overlaps = "yes"
		}
		rows = append(rows, []string{c.Axis, short(c.Count), c.Op, c.What, gigabytes(c.Bytes), c.Link, gigabytes(c.Sent), time, overlaps})
	}
	return rows
}

// aligned returns the rows of a table as lines with aligned columns. wrap does not break
// a line at its spaces.
func aligned(rows [][]string, sides string) []string {
	widths := make([]int, len(sides))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			space := strings.Repeat(noBreak, widths[i]-columnsOf(cell))
			if sides[i] == 'r' {
				cell = space + cell
			} else {
				cell += space
			}
			lines[n] += strings.ReplaceAll(cell, " ", noBreak) + noBreak
		}
		lines[n] = strings.TrimRight(lines[n], noBreak)
	}
	return lines
}

// stages writes the stages of a pipeline. Neighbors with the same layers share a line.
func stages(list []strategy.Stage) (texts []string) {
	for from := 0; from < len(list); {
		to, what := from+1, layers(&list[from])
		for to < len(list) && layers(&list[to]) == what {
			to++
		}
		first, last := &list[from], &list[to-1]
		number := "stage " + strconv.Itoa(first.Number)
		if to > from+1 {
			number = "stages " + strconv.Itoa(first.Number) + " to " + strconv.Itoa(last.Number)
		}
		live := through(strconv.Itoa(first.Live), strconv.Itoa(last.Live)) + " live micro-batch"
		if first.Live != 1 || last.Live != 1 {
			live += "es"
		}
		texts = append(texts, number+": "+what+", "+through(gigabytes(first.Memory.Total), gigabytes(last.Memory.Total))+noBreak+"GB, "+live)
		from = to
	}
	return texts
}

// layers writes what a stage computes.
func layers(s *strategy.Stage) string {
	text := wording.Count(int64(s.Layers), "layer", "layers")
	if s.Embedding {
		text += " and the embedding"
	}
	if s.Head {
		text += " and the head"
	}
	return text
}

// through writes a range of values, or one value if both are equal.
func through(first, last string) string {
	if first == last {
		return first
	}
	return first + " to " + last
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
	processes := "1 process reads "
	if n.Processes != 1 {
		processes = wording.Thousands(int64(n.Processes)) + " processes read up to "
	}
	processes += wording.Count(n.ProcessRows, "row", "rows") + ", " + wording.Bytes(n.ProcessBytes) + " per step"
	if n.Processes != 1 {
		processes += " each"
	}
	processes += "; " + wording.Bytes(n.HostBytes) + " of host memory"
	if n.Sharing > 1 {
		processes += "; " + wording.Thousands(int64(n.Sharing)) + " processes read the same rows"
	}
	texts := []string{rows, processes}
	if n.Available > 0 && n.RowsPerSecond >= 0 {
		texts = append(texts, available(n))
	}
	return indented(texts...)
}

// available reports the speed of the input, and whether it suffices.
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
