package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Text draws a layout for a terminal: which device holds which part of every
// array, which rows every process reads, the bytes, and the problems. For up to
// 64 devices it draws every cell; for larger meshes it leaves out cells. If o.Array
// is set, it draws that array alone.
func Text(l *layout.Layout, o Options) string {
	if o.Width <= 0 {
		o.Width = 80
	}
	t := &page{view: newView(l), Options: o}
	if o.Array != "" {
		i := t.find(o.Array)
		if i < 0 {
			return fmt.Sprintf("there is no array %s\n", wording.Quote(o.Array))
		}
		t.group([]int{i})
		t.legend()
		return t.out.String()
	}
	for _, pieces := range t.headLines() {
		t.line(2, pieces...)
	}
	groups := t.groups()
	for i, g := range groups {
		t.out.WriteByte('\n')
		if i == maxGroups {
			t.line(0, moreText(groups[i:]))
			break
		}
		t.group(g)
	}
	t.legend()
	t.processTable()
	t.problemList()
	return t.out.String()
}

// page collects the text.
type page struct {
	*view
	Options
	out  strings.Builder
	used struct{ replicas, parts bool } // the signs that were drawn, which the legend explains
}

// write writes lines.
func (t *page) write(lines ...string) {
	for _, line := range lines {
		t.out.WriteString(line + "\n")
	}
}

// line writes pieces on lines of at most Width characters. It indents every
// line but the first.
func (t *page) line(indent int, pieces ...string) {
	t.write(drawing.Join(indent, t.Width, pieces...)...)
}

// group draws arrays that look the same: all titles, then one drawing.
func (t *page) group(arrays []int) {
	for i, n := range arrays {
		if i == 8 && len(arrays) > 10 {
			t.line(0, fmt.Sprintf("… and %d more that are cut alike", len(arrays)-i))
			break
		}
		t.line(2, t.title(n)...)
	}
	if first := arrays[0]; t.arrays[first].Sharding != nil {
		g, table := t.fit(first)
		sides := g.sideTexts()
		sides[0] = "  " + sides[0]
		t.line(2, sides...)
		t.write(table.Lines()...)
		t.used.replicas = t.used.replicas || g.replicas > 1
		t.used.parts = t.used.parts || len(g.inner) > 0
	}
}

// fit returns the first table that is at most Width wide, and its grid. It tries the
// largest grid in all styles, the loosest first, then grids of fewer cells. If none
// fits, it returns a table of the smallest grid.
func (t *page) fit(array int) (*grid, *drawing.Table) {
	tries := limits(maxSide)
	if t.mesh.Size() <= fewDevices {
		tries = append([]int{fewDevices}, tries...)
	}
	for g := range t.grids(array, t.Dims, tries) {
		for _, s := range styles {
			if table := t.table(g, s); table.Total() <= t.Width {
				return g, table
			}
		}
	}
	g := t.smallest(array, t.Dims)
	return g, t.table(g, style{split: true, pad: 1})
}

// legend explains the signs that the drawings use.
func (t *page) legend() {
	if !slices.ContainsFunc(t.arrays, func(a layout.Array) bool { return a.Sharding != nil }) {
		return
	}
	d := t.mesh.Device(t.mesh.Size() - 1)
	pieces := []string{fmt.Sprintf("p%d %d: device %d of process %d", d.Process, d.ID, d.ID, d.Process)}
	if t.used.replicas {
		pieces = append(pieces, "0=1: replicas")
	}
	if t.used.parts {
		pieces = append(pieces, "0|1: further parts")
	}
	if len(t.processes) > 1 {
		pieces = append(pieces, "━┃ between processes")
	}
	t.out.WriteByte('\n')
	t.line(0, pieces...)
}
