package document

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/strategy"
)

// style uses the text color of the page around it, so it works on light and dark.
const style = `<style>
.mf-advice{font:14px/1.5 system-ui,sans-serif;color:inherit}
.mf-advice div{overflow-x:auto}
.mf-advice table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap;background:none;color:inherit}
.mf-advice caption{caption-side:top;text-align:left;opacity:.7;padding:4px 0;color:inherit}
.mf-advice th,.mf-advice td{padding:2px 8px;text-align:left;background:none;color:inherit;border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}
.mf-advice .n{text-align:right}
.mf-advice .why{white-space:normal;min-width:20em}
.mf-advice .best{font-weight:600}
.mf-advice .over td{opacity:.65}
.mf-advice ul{margin:0;padding-left:1.5em}
.mf-advice h4{margin:1em 0 .2em}
</style>`

// HTML writes a report as an HTML element for a notebook or a page: the same content
// as [Text]. It contains no script.
func HTML(d *strategy.Document, r *strategy.Report) string {
	p := &page{}
	p.out.WriteString(`<div class="mf-advice">` + style)
	for _, text := range question(d, r) {
		p.element("p", "", text)
	}
	p.table(r)
	for _, s := range sections(r) {
		if s.title == why {
			continue // the table has a column of reasons
		}
		p.element("h4", "", s.title)
		if s.rows != nil {
			p.rows(s)
			continue
		}
		p.out.WriteString("<ul>")
		for _, line := range s.lines {
			p.element("li", "", line.text)
		}
		p.out.WriteString("</ul>")
	}
	p.out.WriteString("</div>\n")
	return p.out.String()
}

// page collects the text of an HTML element.
type page struct{ out strings.Builder }

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", noBreak, "&nbsp;")

func (p *page) element(name, class, text string) {
	p.out.WriteString("<" + name)
	if class != "" {
		p.out.WriteString(` class="` + class + `"`)
	}
	p.out.WriteString(">" + escape.Replace(text) + "</" + name + ">")
}

// rows writes the table of a section.
func (p *page) rows(s section) {
	p.out.WriteString("<div><table>")
	for i, row := range s.rows {
		p.out.WriteString("<tr>")
		for j, cell := range row {
			name, class := "td", ""
			if i == 0 {
				name = "th"
			}
			if s.sides[j] == 'r' {
				class = "n"
			}
			p.element(name, class, cell)
		}
		p.out.WriteString("</tr>")
	}
	p.out.WriteString("</table></div>")
}

func (p *page) table(r *strategy.Report) {
	if len(r.Candidates) == 0 {
		return
	}
	unit := unitOf(r)
	p.out.WriteString("<div><table>")
	p.element("caption", "", caption(unit))
	p.out.WriteString("<thead><tr>")
	for _, c := range columns {
		p.element("th", c.class(), c.title)
	}
	p.element("th", "", strings.ToLower(why))
	p.out.WriteString("</tr></thead><tbody>")
	for i := range r.Candidates {
		switch {
		case i == r.Best:
			p.out.WriteString(`<tr class="best">`)
		case !r.Candidates[i].Fits:
			p.out.WriteString(`<tr class="over">`)
		default:
			p.out.WriteString("<tr>")
		}
		for _, c := range columns {
			p.element("td", c.class(), c.cell(unit, i, &r.Candidates[i]))
		}
		p.element("td", "why", reason(r, i))
		p.out.WriteString("</tr>")
	}
	p.out.WriteString("</tbody></table></div>")
}

// class returns the class of the cells of a column.
func (c *column) class() string {
	if c.right {
		return "n"
	}
	return ""
}
