package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Sizes in pixels.
const (
	chipH    = 18
	barWidth = 260
)

// SVG draws a layout as [Text] does. Every process has a color. A chip is a small
// box with the id of a device: filled for the first device that holds a part, and
// outlined for a replica. The result is a complete document that may also be part
// of an HTML page. It has its own background, follows the light or dark preference
// of the viewer, and has a title and a description for screen readers.
func SVG(l *layout.Layout, o Options) string {
	c := &canvas{view: newView(l), Options: o, Canvas: drawing.New(480)}
	if o.Array != "" {
		i := c.find(o.Array)
		if i < 0 {
			c.Text(drawing.Margin, "mf-b", "there is no array "+wording.Quote(o.Array))
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
			c.Y += 14
			c.Text(drawing.Margin, "mf-m", moreText(groups[i:]))
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
	*drawing.Canvas
	replicas bool // some chip is outlined
	further  bool // some cell has several parts of the array
	drawn    bool // some chip is drawn
}

// color returns the color of a process; more processes than colors repeat them.
func (l *view) color(process int) string {
	n, _ := slices.BinarySearch(l.processes, process)
	return drawing.Color(n)
}

// document returns the whole drawing.
func (c *canvas) document() string { return c.Document("Layout of "+c.mesh.String(), c.describe()) }

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

func (c *canvas) head() {
	head := c.headLines()
	c.Lines(drawing.Margin, "mf-b", head[0]...)
	for _, line := range head[1:] {
		c.Lines(drawing.Margin, "mf-m", line...)
	}
}

// group draws arrays that look the same: all titles, then one drawing.
func (c *canvas) group(arrays []int) {
	c.Y += 14
	for i, n := range arrays {
		if i == maxSide && len(arrays) > maxSide+2 {
			c.Text(drawing.Margin, "mf-m", fmt.Sprintf("… and %d more that are cut alike", len(arrays)-i))
			break
		}
		pieces := c.title(n)
		c.Text(drawing.Margin, "mf-b", pieces[0]+"  "+pieces[1])
		c.Lines(drawing.Margin, "mf-m", pieces[2:]...)
	}
	if c.arrays[arrays[0]].Sharding == nil {
		return
	}
	s := c.fit(arrays[0])
	c.Lines(drawing.Margin, "mf-m", s.sideTexts()...)
	c.Y += 4
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
		if s := c.sheet(g); s.width() <= drawing.MaxWidth && !(first && slices.Contains(s.cols, drawing.Gap)) {
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
	c.Y += 12
	d := c.mesh.Device(c.mesh.Size() - 1)
	x := drawing.Margin
	put := func(chip func(x int) int, text string) {
		x += chip(x) + 8
		c.Label(x, c.Y+13, "mf-m", "", text)
		x += drawing.Runes(text)*drawing.CharWidth + 24
	}
	put(func(x int) int { return c.chip(x, c.Y, d.ID, c.color(d.Process), true) }, fmt.Sprintf("device %d of process %d", d.ID, d.Process))
	if c.replicas {
		put(func(x int) int { return c.chip(x, c.Y, d.ID, c.color(d.Process), false) }, "as a replica")
	}
	if c.further {
		put(func(x int) int { c.separator(x+2, c.Y); return 4 }, "between further parts")
	}
	c.Widen(x - 24 - drawing.Margin)
	c.Y += drawing.LineStep + 4
}

// chip draws a device, filled if it is the first that holds a part, and returns
// its width.
func (c *canvas) chip(x, y, id int, color string, first bool) int {
	w := chipWidth(id)
	class, fill := "mf-t", `fill="none"`
	if first {
		class, fill = "mf-w", `fill="`+color+`"`
	}
	c.Add(`<rect x="%d" y="%d" width="%d" height="%d" rx="5" stroke="%s" %s/>`, x, y, w, chipH, color, fill)
	c.Label(x+w/2, y+13, class, "middle", strconv.Itoa(id))
	return w
}

func (c *canvas) separator(x, y int) {
	c.Add(`<path class="mf-sep" d="M%d %dv%d"/>`, x, y+1, chipH-2)
}

func chipWidth(id int) int { return max(22, 10+drawing.CharWidth*len(strconv.Itoa(id))) }
