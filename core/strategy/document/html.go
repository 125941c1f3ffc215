package document

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/strategy"
	"github.com/meshfeed/meshfeed/internal/markup"
)

// rules are those of the planner's reports, in addition to those of all reports.
const rules = `.CLASS .why{white-space:normal;min-width:20em}
.CLASS .best{font-weight:600}
.CLASS .over td{opacity:.65}
.CLASS h4{margin:1em 0 .2em}
`

// HTML writes a report as an HTML element for a notebook or a page: the same content
// as [Text]. It contains no script.
func HTML(d *strategy.Document, r *strategy.Report) string {
	p := page{markup.New("mf-advice", rules)}
	for _, text := range question(d, r) {
		p.Element("p", "", text)
	}
	p.table(r)
	for _, s := range sections(r) {
		if s.title == why {
			continue // the table has a column of reasons
		}
		p.Element("h4", "", s.title)
		if s.rows != nil {
			p.rows(s)
			continue
		}
		p.Tag("<ul>")
		for _, line := range s.lines {
			p.Element("li", "", line.text)
		}
		p.Tag("</ul>")
	}
	return p.End()
}

// page writes the tables of a report.
type page struct{ *markup.Report }

// rows writes the table of a section.
func (p page) rows(s section) {
	p.Tag("<div><table>")
	for i, row := range s.rows {
		p.Tag("<tr>")
		for j, cell := range row {
			name, class := "td", ""
			if i == 0 {
				name = "th"
			}
			if s.sides[j] == 'r' {
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
	p.Tag("<div><table>")
	p.Element("caption", "", caption(unit))
	p.Tag("<thead><tr>")
	for _, c := range columns {
		p.Element("th", c.class(), c.title)
	}
	p.Element("th", "", strings.ToLower(why))
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
		p.Element("td", "why", reason(r, i))
		p.Tag("</tr>")
	}
	p.Tag("</tbody></table></div>")
}

// class returns the class of the cells of a column.
func (c *column) class() string {
	if c.right {
		return "n"
	}
	return ""
}
