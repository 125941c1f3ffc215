package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Sizes in pixels. All text is monospaced, so its width is known without a font.
const (
	margin    = 20
	charWidth = 7 // width of a character of 11.5 px
	lineStep  = 18
	chipH     = 18
	svgWidth  = 760 // the most of a drawing; cells are left out if it would be wider
	barWidth  = 260
)

// SVG draws a layout as [Text] does. Every process has a color. A chip is a small
// box with the id of a device: filled for the first device that holds a part, and
// outlined for a replica. The result is a complete document that may also be part
// of an HTML page. It has its own background, follows the light or dark preference
// of the viewer, and has a title and a description for screen readers.
func SVG(l *layout.Layout, o Options) string {
	c := &canvas{view: newView(l), Options: o, y: margin, width: 480}
	if o.Array != "" {
		i := c.find(o.Array)
		if i < 0 {
			c.text(margin, "mf-b", "there is no array "+wording.Quote(o.Array))
		} else {
			c.group([]int{i})
			c.key()
		}
		return c.document()
	}
	c.head()
	groups := c.groups()
	for i, g := range groups {
		if i == maxGroups {
			c.y += 14
			c.text(margin, "mf-m", moreText(groups[i:]))
			break
		}
		c.group(g)
	}
	c.key()
	c.processBars()
	c.problemList()
	return c.document()
}

// canvas is a drawing while it is drawn.
type canvas struct {
	*view
	Options
	body     strings.Builder
	y        int // top of what is drawn next
	width    int
	replicas bool // some chip is outlined
	further  bool // some cell has several parts of the array
	drawn    bool // some chip is drawn
}

// svgStyle has all colors except those of processes, which suit both
// backgrounds.
const svgStyle = `
.mf-bg{fill:#fff;stroke:#d8dee6}.mf-t{fill:#1c2733}.mf-b{fill:#1c2733;font-weight:600}.mf-m{fill:#5b6875}.mf-w{fill:#fff;font-weight:600}
.mf-cell{stroke:#c3ccd6}.mf-track{fill:#e9edf2}.mf-many{fill:#6c7a89}.mf-sep{stroke:#8a96a3}.mf-error{fill:#c02b37;font-weight:600}.mf-warning{fill:#96620a;font-weight:600}.mf-info{fill:#2a63b8;font-weight:600}
@media (prefers-color-scheme:dark){.mf-bg{fill:#151b22;stroke:#333d49}.mf-t{fill:#e3e9ef}.mf-b{fill:#f3f6f9}.mf-m{fill:#9aa7b4}.mf-cell{stroke:#465260}.mf-track{fill:#2a333d}.mf-many{fill:#8b99a7}.mf-sep{stroke:#77838f}.mf-error{fill:#ff8790}.mf-warning{fill:#f0b95c}.mf-info{fill:#8ab8ff}}
`

// palette has the colors of processes; more processes repeat them. White text is
// legible on each.
var palette = []string{"#2f68cc", "#b04a12", "#207a50", "#983a96", "#7d6200", "#0b7385", "#bb3650", "#6350c0", "#4d6f25", "#795843"}

func (l *view) color(process int) string {
	n, _ := slices.BinarySearch(l.processes, process)
	return palette[n%len(palette)]
}

// document returns the whole drawing.
func (c *canvas) document() string {
	w, h := c.width+2*margin, c.y+margin
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d" style="max-width:100%%;height:auto" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="11.5">`+"\n", w, h, w, h)
	fmt.Fprintf(&s, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", escapeXML("Layout of "+c.mesh.String()), escapeXML(c.describe()), svgStyle)
	fmt.Fprintf(&s, `<rect class="mf-bg" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>`+"\n", w-1, h-1)
	return s.String() + c.body.String() + "</svg>\n"
}

// describe describes the drawing in words.
func (c *canvas) describe() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %s.", wording.Count(int64(c.mesh.Size()), "device", "devices"), wording.Count(int64(len(c.processes)), "process", "processes"))
	for i, a := range c.arrays {
		if c.Array != "" && a.Name != c.Array {
			continue
		}
		if i == maxSide {
			fmt.Fprintf(&s, " And %d more arrays.", len(c.arrays)-i)
			break
		}
		fmt.Fprintf(&s, " Array %s: %s %s", wording.Plain(a.Name), a.Type, wording.Shape(a.Shape))
		if a.Sharding == nil {
			s.WriteString(", which cannot be sharded.")
			continue
		}
		fmt.Fprintf(&s, " by %s, shards of shape %s.", wording.Plain(a.Sharding.Spec().String()), wording.Shape(c.Tiling(i).Index(0).Shape()))
	}
	return s.String()
}

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escapeXML escapes text. wording.Plain has removed what XML does not allow.
func escapeXML(s string) string { return xmlEscapes.Replace(s) }

// label puts a text at a position.
func (c *canvas) label(x, y int, class, anchor, text string) {
	if anchor != "" {
		anchor = ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(&c.body, `<text class="%s" x="%d" y="%d"%s xml:space="preserve">%s</text>`+"\n", class, x, y, anchor, escapeXML(text))
}

// text puts a line of text below everything else.
func (c *canvas) text(x int, class, text string) {
	c.label(x, c.y+12, class, "", text)
	c.width = max(c.width, x-margin+runes(text)*charWidth)
	c.y += lineStep
}

// lines joins pieces with " · " to as few lines as the width allows.
func (c *canvas) lines(x int, class string, pieces ...string) {
	line := ""
	for i, p := range pieces {
		switch {
		case i == 0:
			line = p
		case x+(runes(line)+3+runes(p))*charWidth > svgWidth:
			c.text(x, class, line)
			line = p
		default:
			line += " · " + p
		}
	}
	c.text(x, class, line)
}

func (c *canvas) head() {
	head := c.headLines()
	c.lines(margin, "mf-b", head[0]...)
	for _, line := range head[1:] {
		c.lines(margin, "mf-m", line...)
	}
}

// group draws arrays whose drawings are the same: all titles, then one drawing.
func (c *canvas) group(arrays []int) {
	c.y += 14
	for i, n := range arrays {
		if i == maxSide && len(arrays) > maxSide+2 {
			c.text(margin, "mf-m", fmt.Sprintf("… and %d more that are cut alike", len(arrays)-i))
			break
		}
		pieces := c.title(n)
		c.text(margin, "mf-b", pieces[0]+"  "+pieces[1])
		c.lines(margin, "mf-m", pieces[2:]...)
	}
	if c.arrays[arrays[0]].Sharding == nil {
		return
	}
	s := c.fit(arrays[0])
	c.lines(margin, "mf-m", s.sideTexts()...)
	c.y += 4
	s.draw(c)
	c.drawn = true
	c.replicas = c.replicas || s.replicas > 1
	c.further = c.further || len(s.inner) > 0
}

// fit returns the drawing of an array. If it would be too wide or leave out columns,
// fit exchanges rows and columns. If that does not help, it leaves out more columns.
func (c *canvas) fit(array int) *sheet {
	most := maxSide
	if c.mesh.Size() <= fewDevices {
		most = 16
	}
	for g, first := range c.grids(array, c.Dims, limits(most)) {
		if s := c.sheet(g); s.width() <= svgWidth && !(first && slices.Contains(s.cols, gap)) {
			return s
		}
	}
	return c.sheet(c.smallest(array, c.Dims))
}

// key draws the legend: what filled and outlined chips and separators mean.
func (c *canvas) key() {
	if !c.drawn {
		return
	}
	c.y += 12
	d := c.mesh.Device(c.mesh.Size() - 1)
	x := margin
	put := func(chip func(x int) int, text string) {
		x += chip(x) + 8
		c.label(x, c.y+13, "mf-m", "", text)
		x += runes(text)*charWidth + 24
	}
	put(func(x int) int { return c.chip(x, c.y, d.ID, c.color(d.Process), true) }, fmt.Sprintf("device %d of process %d", d.ID, d.Process))
	if c.replicas {
		put(func(x int) int { return c.chip(x, c.y, d.ID, c.color(d.Process), false) }, "as a replica")
	}
	if c.further {
		put(func(x int) int { c.separator(x+2, c.y); return 4 }, "between further parts")
	}
	c.width = max(c.width, x-24-margin)
	c.y += lineStep + 4
}

// chip draws a device, filled if it is the first that holds a part, and returns
// its width.
func (c *canvas) chip(x, y, id int, color string, first bool) int {
	w := chipWidth(id)
	class, fill := "mf-t", `fill="none"`
	if first {
		class, fill = "mf-w", `fill="`+color+`"`
	}
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="%d" rx="5" stroke="%s" %s/>`+"\n", x, y, w, chipH, color, fill)
	c.label(x+w/2, y+13, class, "middle", strconv.Itoa(id))
	return w
}

func (c *canvas) separator(x, y int) {
	fmt.Fprintf(&c.body, `<path class="mf-sep" d="M%d %dv%d"/>`+"\n", x, y+1, chipH-2)
}

func chipWidth(id int) int { return max(22, 10+charWidth*len(strconv.Itoa(id))) }
