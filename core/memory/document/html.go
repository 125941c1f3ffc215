package document

import (
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/memory"
	"github.com/meshfeed/meshfeed/internal/markup"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// rules are the CSS of a report. The part of a bar that depends on the compiler is
// lighter.
const rules = `.CLASS div+div,.CLASS div+ul{margin-top:1em}
.CLASS .bar{display:flex;width:8em;height:.7em;background:color-mix(in srgb,currentColor 10%,transparent)}
.CLASS .bar i{background:#4c8dd6}
.CLASS .bar i+i{opacity:.5}
.CLASS .over{color:#d33;font-weight:600}
`

// HTML writes the same as [Text] as an HTML element for a notebook or a page, with a
// bar for every size. It has no script.
func HTML(u *memory.Usage) string {
	p := page{markup.New("mf-memory", rules)}
	p.Element("p", "", caption(u))
	p.arrays(u)
	p.sums(u)
	if !u.Complete() {
		p.Element("p", "", noSums)
	}
	if list := problems(u); list != nil {
		p.Tag("<ul>")
		for _, text := range list {
			p.Element("li", "", text)
		}
		p.Tag("</ul>")
	}
	return p.End()
}

// page writes the tables of a report.
type page struct{ *markup.Report }

func (p page) arrays(u *memory.Usage) {
	rows, rest := listed(u)
	largest := int64(1)
	for _, r := range rows {
		largest = max(largest, r.Bytes)
	}
	p.Tag(`<div tabindex="0"><table><thead><tr>`)
	for _, title := range []string{"array", "shape", "dtype", "spec"} {
		p.Element("th", "", title)
	}
	p.Element("th", "n", "bytes")
	p.Element("th", "", "")
	p.Element("th", "n", "copies")
	p.Element("th", "", "along")
	p.Tag("</tr></thead><tbody>")
	for _, r := range rows {
		p.Tag("<tr>")
		for _, text := range []string{wording.Plain(r.Name), wording.Shape(r.Shape), r.Element.String(), specOf(r)} {
			p.Element("td", "", text)
		}
		bytes, copies := sizeOf(r)
		p.Element("td", "n", bytes)
		p.bar(r.Bytes, r.Bytes, largest)
		p.Element("td", "n", copies)
		p.Element("td", "", along(r))
		p.Tag("</tr>")
	}
	p.Tag("</tbody></table></div>")
	if rest != "" {
		p.Element("p", "", rest)
	}
}

// along names the axes along which devices hold the same part of an array. For an array
// in the memory of the host, it adds "host".
func along(r memory.Row) string {
	var parts []string
	for _, axis := range r.Replicated {
		parts = append(parts, wording.Plain(axis))
	}
	text := strings.Join(parts, ", ")
	if r.Host != "" {
		text = strings.TrimLeft(text+"; host", "; ")
	}
	return text
}

func (p page) sums(u *memory.Usage) {
	list := sums(u)
	if list == nil {
		return
	}
	largest := int64(1)
	for _, s := range list {
		largest = max(largest, s.high)
	}
	p.Tag(`<div tabindex="0"><table><tbody>`)
	for _, s := range list {
		p.Tag("<tr>")
		p.Element("td", "", s.name)
		p.Element("td", "n", s.text)
		p.bar(s.low, s.high, largest)
		class := ""
		if s.note == tooSmall {
			class = "over"
		}
		p.Element("td", class, s.note)
		p.Tag("</tr>")
	}
	p.Tag("</tbody></table></div>")
}

// bar writes a cell with a bar for an interval of bytes.
func (p page) bar(low, high, most int64) {
	p.Tag(`<td><span class="bar">` + part(low, most))
	if high > low {
		p.Tag(part(high-low, most))
	}
	p.Tag("</span></td>")
}

func part(bytes, most int64) string {
	return fmt.Sprintf(`<i style="width:%.1f%%"></i>`, 100*float64(bytes)/float64(most))
}
