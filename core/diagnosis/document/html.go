package document

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/internal/markup"
)

// rules are the CSS of a report.
const rules = `.CLASS p{margin:0 0 .3em}
.CLASS div+div,.CLASS p+div{margin-top:1em}
.CLASS .bar{display:flex;width:8em;height:.7em;background:color-mix(in srgb,currentColor 10%,transparent)}
.CLASS .bar i{background:#4c8dd6}
.CLASS .in{padding-left:2em}
`

// HTML writes the same as [Text] as an HTML element for a notebook or a page, with a bar
// for every share. It has no script.
func HTML(r *diagnosis.Report) string {
	p := markup.New("mf-report", rules)
	for _, s := range r.Sentences {
		p.Element("p", "", s)
	}
	head(p, []string{"part", "a batch", "of the time", "", ""})
	for _, part := range r.Parts {
		class := ""
		if inside[part.Name] {
			class = "in"
		}
		p.Tag("<tr>")
		p.Element("td", class, part.Name)
		p.Element("td", "n", diagnosis.Duration(part.Time.Seconds()))
		p.Element("td", "n", diagnosis.Percent(part.Share))
		p.Tag(fmt.Sprintf(`<td><span class="bar"><i style="width:%.1f%%"></i></span></td>`, 100*part.Share))
		p.Element("td", "", part.Note)
		p.Tag("</tr>")
	}
	p.Tag("</tbody></table></div>")
	rows, rest := processes(r)
	if len(rows) > 0 {
		head(p, heads)
		for _, row := range rows {
			p.Tag("<tr>")
			for i, cell := range row {
				class := ""
				if i < 5 {
					class = "n"
				}
				p.Element("td", class, cell)
			}
			p.Tag("</tr>")
		}
		p.Tag("</tbody></table></div>")
	}
	if rest != "" {
		p.Element("p", "", rest)
	}
	return p.End()
}

func head(p *markup.Report, titles []string) {
	p.Tag(`<div tabindex="0"><table><thead><tr>`)
	for _, title := range titles {
		p.Element("th", "", title)
	}
	p.Tag("</tr></thead><tbody>")
}
