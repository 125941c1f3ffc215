package document

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/strategy"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Columns is the largest width of the text of [Text].
const Columns = 100

// Text writes a report as text of at most Columns columns: the question, a table of
// candidates, why the others are not the best, the parts of the best one's step, what
// it needs of the input, and what the numbers assume.
func Text(d *strategy.Document, r *strategy.Report) string {
	p := &printer{unit: unitOf(r)}
	p.question(d, r)
	p.problems(r)
	p.candidates(r)
	p.reasons(r)
	p.pruned(r)
	p.best(r)
	p.input(r)
	p.assumptions(r)
	return p.out.String()
}

// printer collects the lines of a text.
type printer struct {
	out  strings.Builder
	unit timeUnit
}

// paragraph writes a text under a mark, such as the number of a candidate. It breaks
// lines between words.
func (p *printer) paragraph(mark, text string) {
	indent := columnsOf(mark)
	p.out.WriteString(mark)
	for i, line := range wrap(text, Columns-indent) {
		if i > 0 {
			p.out.WriteString(strings.Repeat(" ", indent))
		}
		p.out.WriteString(line)
		p.out.WriteByte('\n')
	}
}

func (p *printer) heading(text string) {
	p.out.WriteByte('\n')
	p.paragraph("", text)
}

func columnsOf(s string) int { return len([]rune(s)) }

// noBreak is a space at which wrap does not break a line. It writes a plain space.
const noBreak = "\u00a0"

// wrap breaks a text into lines of at most width columns. It breaks a word only if
// the word is longer than a line.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.SplitSeq(text, " ") {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case columnsOf(*last)+1+columnsOf(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
		for rest := []rune(lines[len(lines)-1]); len(rest) > width; {
			lines[len(lines)-1] = string(rest[:width])
			rest = rest[width:]
			lines = append(lines, string(rest))
		}
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], noBreak, " ")
	}
	return lines
}

func (p *printer) question(d *strategy.Document, r *strategy.Report) {
	size := wording.Thousands(r.Model.Parameters) + " parameters"
	if r.Model.ActiveParameters != r.Model.Parameters {
		size += ", " + wording.Thousands(r.Model.ActiveParameters) + " active"
	}
	on := wording.Count(int64(r.Devices), "device", "devices")
	if d.Cluster.Device != "" {
		on = wording.Thousands(int64(r.Devices)) + " × " + wording.Plain(d.Cluster.Device)
	}
	p.paragraph("", wording.Plain(r.Model.Name)+": "+size+", on "+on)
	batch := "a step trains on " + wording.Count(d.Training.Batch, "example", "examples")
	if d.Training.Tokens > 0 {
		batch = "a step trains on " + wording.Count(d.Training.Tokens, "token", "tokens")
	}
	count := wording.Count(r.Evaluated, "candidate", "candidates") + " on " + wording.Count(r.Meshes, "mesh", "meshes")
	p.paragraph("", batch+"; evaluated: "+count+fit(r))
}

// fit says whether a candidate fits.
func fit(r *strategy.Report) string {
	if r.Best < 0 {
		return "; none fits"
	}
	return ""
}

func (p *printer) problems(r *strategy.Report) {
	for _, f := range r.Problems {
		text := f.Message
		if f.Hint != "" {
			text += "; " + f.Hint
		}
		p.paragraph(string(f.Severity)+": ", text)
	}
}

// column is a column of the table of candidates.
type column struct {
	title string
	right bool // numbers are aligned to the right
	cell  func(p *printer, number int, c *strategy.Candidate) string
}

var columns = []column{
	{"", true, func(_ *printer, number int, _ *strategy.Candidate) string { return strconv.Itoa(number + 1) }},
	{"mesh", false, func(_ *printer, _ int, c *strategy.Candidate) string { return axesText(c.Mesh) }},
	{"ZeRO", true, func(_ *printer, _ int, c *strategy.Candidate) string { return zero(c) }},
	{"recomp", false, func(_ *printer, _ int, c *strategy.Candidate) string {
		return c.Recomputation[:min(6, len(c.Recomputation))]
	}},
	{"micro", true, func(_ *printer, _ int, c *strategy.Candidate) string {
		return short(int64(c.MicroBatch)) + "×" + short(int64(c.MicroBatches))
	}},
	{"weights", true, func(_ *printer, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Weights) }},
	{"grads", true, func(_ *printer, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Gradients) }},
	{"optim", true, func(_ *printer, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Optimizer) }},
	{"activ", true, func(_ *printer, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Activations) }},
	{"other", true, func(_ *printer, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Buffers) }},
	{"free", true, func(_ *printer, _ int, c *strategy.Candidate) string { return free(c.Memory) }},
	{"step", true, func(p *printer, _ int, c *strategy.Candidate) string {
		if c.Time == nil {
			return "?"
		}
		return p.unit.of(c.Time.Step)
	}},
	{"range", true, func(p *printer, _ int, c *strategy.Candidate) string {
		if c.Time == nil {
			return "?"
		}
		return p.unit.of(c.Time.Low) + "–" + p.unit.of(c.Time.High)
	}},
	{"bound", false, func(_ *printer, _ int, c *strategy.Candidate) string {
		if c.Time == nil {
			return "?"
		}
		return c.Time.Bound
	}},
}

const (
	meshColumn  = 1
	leastColumn = 8 // of a mesh: "context," fits
)

func (p *printer) candidates(r *strategy.Report) {
	if len(r.Candidates) == 0 {
		return
	}
	p.heading("GB (10^9 bytes) per device, and " + p.unit.name + " per step (expected, from best to worst case):")
	rows := make([][]string, len(r.Candidates)+1)
	widths := make([]int, len(columns))
	for i := range rows {
		for j, c := range columns {
			cell := c.title
			if i > 0 {
				cell = c.cell(p, i-1, &r.Candidates[i-1])
			}
			rows[i] = append(rows[i], cell)
			widths[j] = max(widths[j], columnsOf(cell))
		}
	}
	rest := Columns - len(columns) + 1
	for j, w := range widths {
		if j != meshColumn {
			rest -= w
		}
	}
	widths[meshColumn] = min(widths[meshColumn], max(rest, leastColumn))
	for _, row := range rows {
		p.row(row, widths)
	}
}

// row writes a row of the table. A mesh may take several lines.
func (p *printer) row(cells []string, widths []int) {
	for i, axes := range wrap(cells[meshColumn], widths[meshColumn]) {
		line := ""
		for j, c := range columns {
			cell := ""
			switch {
			case j == meshColumn:
				cell = axes
			case i == 0:
				cell = cells[j]
			}
			space := strings.Repeat(" ", widths[j]-columnsOf(cell))
			if c.right {
				line += space + cell + " "
			} else {
				line += cell + space + " "
			}
		}
		p.out.WriteString(strings.TrimRight(line, " "))
		p.out.WriteByte('\n')
	}
}

func axesText(list []mesh.Axis) string {
	if len(list) == 0 {
		return "one device"
	}
	axes := make([]string, len(list))
	for i, a := range list {
		axes[i] = a.Name + " " + strconv.Itoa(a.Size)
	}
	return strings.Join(axes, ", ")
}

// zero writes the stage of ZeRO. The axis fsdp is stage 3.
func zero(c *strategy.Candidate) string {
	if !slices.ContainsFunc(c.Mesh, func(a mesh.Axis) bool { return a.Name == strategy.FSDP }) {
		return strconv.Itoa(c.ZeRO)
	}
	if c.ZeRO == 0 {
		return "3"
	}
	return "3, " + strconv.Itoa(c.ZeRO)
}

func free(m strategy.Memory) string {
	if m.Capacity == 0 {
		return "?"
	}
	return gigabytes(m.Free)
}

func (p *printer) reasons(r *strategy.Report) {
	width := len(strconv.Itoa(len(r.Candidates)))
	began := false
	for i := range r.Candidates {
		c := &r.Candidates[i]
		text := strings.Join(c.Reasons, "; ")
		if i == r.Best {
			text = strings.Join(append([]string{"the best"}, c.Reasons...), "; ")
		}
		if text == "" {
			continue
		}
		if !began {
			p.heading("Why:")
			began = true
		}
		number := strconv.Itoa(i + 1)
		p.paragraph(strings.Repeat(" ", width-len(number))+number+" ", text)
	}
}

func (p *printer) pruned(r *strategy.Report) {
	if len(r.Pruned) == 0 {
		return
	}
	p.heading("Not evaluated:")
	for _, s := range r.Pruned {
		p.paragraph("  ", wording.Count(s.Count, "mesh", "meshes")+": "+s.Message)
	}
}

// best writes the parts of the best candidate's step, its collectives and its stages.
func (p *printer) best(r *strategy.Report) {
	if r.Best < 0 || r.Candidates[r.Best].Time == nil {
		return
	}
	t := r.Candidates[r.Best].Time
	p.heading("A step of " + strconv.Itoa(r.Best+1) + ":")
	var sum []string
	for _, part := range parts(t) {
		if part.value > 0 {
			sum = append(sum, part.key+" "+duration(part.value))
		}
	}
	text := strings.Join(sum, ", ")
	if t.Hidden > 0 {
		text += "; " + duration(t.Hidden) + " of communication run during computation"
	}
	p.paragraph("  ", text)
	bound := "bound by " + t.Bound
	if t.Next != "" {
		bound += "; " + t.Next + " is " + duration(t.Behind) + " shorter"
	}
	if t.TokensPerSecond > 0 {
		bound += "; " + wording.Thousands(t.TokensPerSecond) + " tokens per second"
	}
	if t.MFU > 0 {
		bound += "; " + percent(t.MFU) + " of the peak FLOP/s"
	}
	p.paragraph("  ", bound)
	for i := range r.Collectives {
		p.paragraph("  ", collective(&r.Collectives[i]))
	}
	if len(r.Stages) < 2 {
		return
	}
	for _, s := range r.Stages {
		p.paragraph("  ", "stage "+strconv.Itoa(s.Number)+": "+wording.Count(int64(s.Layers), "layer", "layers")+", "+
			gigabytes(s.Memory.Total)+noBreak+"GB, "+wording.Count(int64(s.Live), "live micro-batch", "live micro-batches"))
	}
}

func collective(c *strategy.Collective) string {
	text := c.Axis + ": " + wording.Thousands(c.Count) + " × " + c.Op
	if c.What != "" {
		text += " of " + c.What
	}
	text += " (" + wording.Bytes(c.Bytes) + ") over the " + c.Link + " links: a device sends " + gigabytes(c.Sent) + noBreak + "GB"
	if c.Ns >= 0 {
		text += " in " + duration(c.Ns)
	}
	if c.Overlapped {
		text += ", during computation"
	}
	return text
}

func (p *printer) input(r *strategy.Report) {
	n := r.Input
	if n == nil {
		return
	}
	p.heading("Input of " + strconv.Itoa(r.Best+1) + ":")
	text := wording.Thousands(n.RowsPerStep) + " rows per step, " + wording.Bytes(n.BytesPerStep)
	if n.RowsPerSecond >= 0 {
		text += "; " + decimal(n.RowsPerSecond) + " rows per second"
	}
	p.paragraph("  ", text)
	text = wording.Count(int64(n.Processes), "process reads", "processes read") + " up to " + wording.Count(n.ProcessRows, "row", "rows") + " each, " +
		wording.Bytes(n.ProcessBytes) + " per step; " + wording.Bytes(n.HostBytes) + " of host memory"
	if n.Sharing > 1 {
		text += "; " + strconv.Itoa(n.Sharing) + " processes read the same rows"
	}
	p.paragraph("  ", text)
	if n.Available == 0 || n.RowsPerSecond < 0 {
		return
	}
	text = "the input delivers " + wording.Thousands(n.Available) + " rows per second: it does not keep up"
	if n.KeepsUp {
		text = "the input delivers " + wording.Thousands(n.Available) + " rows per second: it keeps up"
	}
	if n.Margin > 0 {
		text += ", with " + decimal(n.Margin) + " times what a step needs"
	}
	p.paragraph("  ", text)
}

func (p *printer) assumptions(r *strategy.Report) {
	if len(r.Assumptions) == 0 {
		return
	}
	p.heading("Assumptions:")
	for _, a := range r.Assumptions {
		p.paragraph("  ", a.Code+": "+a.Text)
	}
}
