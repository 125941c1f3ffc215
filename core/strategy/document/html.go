package document

import (
	"slices"
	"strconv"

	"github.com/meshfeed/meshfeed/core/diagram"
	"github.com/meshfeed/meshfeed/core/strategy"
	"github.com/meshfeed/meshfeed/internal/markup"
)

// rules are CSS rules of the planner's reports. Package markup adds those of all reports,
// and replaces CLASS by the class of the report.
const rules = `.CLASS p,.CLASS li{max-width:64em}
.CLASS h3{margin:0 0 .3em;font-size:1.15em;font-weight:600;text-wrap:balance}
.CLASS h4{margin:1.4em 0 .4em}
.CLASS p{margin:.3em 0}
.CLASS .tiles{max-width:76em;display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5em,1fr));gap:.6em;margin:.9em 0}
.CLASS .tiles div{padding:.5em .8em;border-radius:8px;background:color-mix(in srgb,currentColor 6%,transparent)}
.CLASS .tiles b{display:block;font-size:1.25em;font-variant-numeric:tabular-nums}
.CLASS .tiles span{font-size:.86em;opacity:.75}
.CLASS .problem{margin:.5em 0;padding:.4em .8em;border-left:3px solid #d08700;background:color-mix(in srgb,#d08700 10%,transparent)}
.CLASS .error{border-color:#d33;background:color-mix(in srgb,#d33 10%,transparent)}
.CLASS .info{border-color:#3b82f6;background:color-mix(in srgb,#3b82f6 10%,transparent)}
.CLASS thead th{font-weight:600;vertical-align:bottom}
.CLASS .best td{font-weight:600;background:color-mix(in srgb,#2f68cc 14%,transparent)}
.CLASS .over td{opacity:.6}
.CLASS .notes td{white-space:normal;border:0;vertical-align:top}
.CLASS .notes td:first-child{white-space:nowrap}
.CLASS .pair{display:flex;flex-wrap:wrap;gap:0 2em}
.CLASS .pair>div{min-width:0}
.CLASS .pair>div+div{flex:1 1 26em}
.CLASS .pair h4{margin-top:.9em}
.CLASS summary{margin-top:1.1em;font-weight:600;cursor:pointer}
.CLASS details>div,.CLASS details>ul{margin-top:.4em}
.CLASS li{margin:.2em 0}
.CLASS svg{max-width:none!important;display:block;margin-top:.9em}
`

// HTML writes a report as an HTML element for a notebook or a page: the same content as
// [Text], with pictures of the memory and of the best candidate's pipeline. It contains
// no script.
func HTML(d *strategy.Document, r *strategy.Report) string {
	p := page{markup.New("mf-advice", rules)}
	p.Element("h3", "", question(d, r))
	p.Element("p", "", tried(r))
	p.tiles(r)
	for _, problem := range r.Problems {
		p.Element("p", "problem "+string(problem.Severity), problem.Text())
	}
	p.table(r)
	if len(r.Candidates) > 0 {
		if rows := usedAxes(r); len(rows) > 1 {
			p.fold(axesTitle, func() { p.rows(rows, "ll", "notes") })
		}
		p.fold("Columns", func() { p.rows(notes(r, column.heading), "ll", "notes") })
		p.Tag(`<div class="pair"><div>`)
		p.picture(memory(r))
		p.Tag("</div><div>")
		p.section(section{title: "Why", lines: reasons(r)})
		p.Tag("</div></div>")
	}
	if r.Pipeline != nil && p.picture(diagram.Pipeline(*r.Pipeline)) {
		p.Element("p", "", scheduleNote(r))
	}
	for _, s := range sections(r) {
		p.section(s)
	}
	return p.End()
}

// page writes the parts of a report.
type page struct{ *markup.Report }

// tiles writes the most important numbers of the best candidate.
func (p page) tiles(r *strategy.Report) {
	if r.Best < 0 {
		return
	}
	p.Tag(`<div class="tiles">`)
	for _, n := range highlights(&r.Candidates[r.Best]) {
		p.Tag("<div>")
		p.Element("b", "", n[0])
		p.Element("span", "", n[1])
		p.Tag("</div>")
	}
	p.Tag("</div>")
}

// fold writes a part that is closed until the reader opens it.
func (p page) fold(title string, content func()) {
	p.Tag("<details>")
	p.Element("summary", "", title)
	content()
	p.Tag("</details>")
}

// picture writes a diagram as SVG. It returns false for one that is too large to draw.
func (p page) picture(s diagram.Spec) bool {
	d, err := s.Draw()
	if err != nil {
		return false
	}
	p.Tag(`<div tabindex="0">` + d.SVG(0) + "</div>")
	return true
}

// section writes the title and the content of a section.
func (p page) section(s section) {
	if s.folded {
		p.fold(s.title, func() { p.content(s) })
		return
	}
	p.Element("h4", "", s.title)
	p.content(s)
}

// content writes the table or the list of a section.
func (p page) content(s section) {
	switch {
	case s.rows != nil:
		p.rows(s.rows, s.sides, "")
	case slices.ContainsFunc(s.lines, func(l line) bool { return l.mark != indent }):
		var rows [][]string
		for _, l := range s.lines {
			rows = append(rows, []string{l.mark, l.text})
		}
		p.rows(append([][]string{nil}, rows...), "rl", "notes")
	default:
		p.Tag("<ul>")
		for _, l := range s.lines {
			p.Element("li", "", l.text)
		}
		p.Tag("</ul>")
	}
}

// rows writes a table. The first row is the heading, and may be empty. sides aligns the
// columns, as in section.
func (p page) rows(rows [][]string, sides, class string) {
	p.Tag(`<div tabindex="0"><table class="` + class + `">`)
	for i, row := range rows {
		p.Tag("<tr>")
		for j, cell := range row {
			name, class := "td", ""
			if i == 0 {
				name = "th"
			}
			if sides[j] == 'r' {
				class = "n"
			}
			p.Element(name, class, cell)
		}
		p.Tag("</tr>")
	}
	p.Tag("</table></div>")
}

func (p page) table(r *strategy.Report) {
	if len(r.Candidates) == 0 {
		return
	}
	unit := unitOf(r)
	p.Tag(`<div tabindex="0"><table>`)
	p.Element("caption", "", caption(unit))
	p.Tag("<thead><tr>")
	for _, c := range columns {
		p.Element("th", c.class(), c.heading())
	}
	p.Tag("</tr></thead><tbody>")
	for i := range r.Candidates {
		switch {
		case i == r.Best:
			p.Tag(`<tr class="best">`)
		case !r.Candidates[i].Fits:
			p.Tag(`<tr class="over">`)
		default:
			p.Tag("<tr>")
		}
		for _, c := range columns {
			p.Element("td", c.class(), c.cell(unit, i, &r.Candidates[i]))
		}
		p.Tag("</tr>")
	}
	p.Tag("</tbody></table></div>")
}

// class returns the class of the cells of a column.
func (c column) class() string {
	if c.right {
		return "n"
	}
	return ""
}

// highlights lists the most important numbers of a candidate, each with its meaning.
func highlights(c *strategy.Candidate) [][2]string {
	list := [][2]string{{meshText(c), settings(c)}}
	memory := [2]string{gigabytes(c.Memory.Total) + noBreak + "GB", "per device"}
	if c.Memory.Capacity > 0 {
		memory[1] = "of " + gigabytes(c.Memory.Capacity) + noBreak + "GB per device, at most " + gigabytes(c.Memory.Most()) + noBreak + "GB"
	}
	list = append(list, memory)
	if t := c.Time; t != nil {
		list = append(list, [2]string{duration(t.Step), "per step, from " + duration(t.Low) + " to " + duration(t.High)})
		if t.MFU > 0 {
			list = append(list, [2]string{percent(t.MFU), "of the peak FLOP/s (MFU), bound by " + strategy.PartName(t.Bound)})
		}
	}
	return list
}

// memory compares the memory of the candidates.
func memory(r *strategy.Report) diagram.Memory {
	m := diagram.CandidateMemory(r)
	m.Title = "Memory of a device, for each candidate"
	for i := range m.Bars {
		m.Bars[i].Label = padded(strconv.Itoa(i+1), len(strconv.Itoa(len(m.Bars)))) + "  " + strategy.MeshText(r.Candidates[i].Mesh)
	}
	return m
}

// scheduleNote says how the picture of the best candidate's pipeline differs from its step.
func scheduleNote(r *strategy.Report) string {
	note := "The picture has the computation of the micro-batches, without communication."
	if t := r.Candidates[r.Best].Time; t != nil {
		note += " In the step of candidate " + strconv.Itoa(r.Best+1) + ", the slowest stage is idle for " + percent((1000*t.Bubble+t.Step/2)/t.Step) + " of the time."
	}
	return note
}
