package diagram

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Mesh is a mesh with the groups of devices along each axis: the devices of a group
// differ only in their position along that axis.
type Mesh struct{ Axes []mesh.Axis }

// Draw draws the mesh once per axis, with the groups along that axis.
func (p Mesh) Draw() (*Diagram, error) {
	m, err := uniform("/axes", p.Axes)
	if err != nil {
		return nil, err
	}
	d := &Diagram{title: fmt.Sprintf("Groups of %s", wording.Plain(m.String()))}
	d.about = fmt.Sprintf("%s, %s.", d.title, wording.Count(int64(m.Size()), "device", "devices"))
	d.add(note{muted, "A collective over an axis runs in every group of devices that differ only in that axis."}, space(8))
	var blocks flow
	var notes []part
	for n, a := range p.Axes {
		if a.Size == 1 {
			continue
		}
		groups := meshGroups{axes: p.Axes, axis: n}
		about := fmt.Sprintf("%s over %s: %s", wording.Count(int64(m.Size()/a.Size), "group", "groups"), wording.Plain(a.Name), sets(groups.shown()))
		d.about += " " + strings.ToUpper(about[:1]) + about[1:] + "."
		blocks = append(blocks, groups.block())
		notes = append(notes, note{plain, about})
	}
	if blocks == nil {
		d.add(note{plain, "No axis has more than one device, so there are no groups."})
		return d, nil
	}
	d.add(blocks, space(6))
	d.add(notes...)
	return d, nil
}

// meshGroups are the groups of devices along an axis.
type meshGroups struct {
	axes []mesh.Axis
	axis int
}

// stride returns the difference between the positions of neighbors along an axis.
func (g meshGroups) stride(axis int) int {
	stride := 1
	for _, a := range g.axes[axis+1:] {
		stride *= a.Size
	}
	return stride
}

// group returns the number of the group of the device at a position. The groups are
// numbered in the order of their first devices.
func (g meshGroups) group(position int) int {
	stride := g.stride(g.axis)
	return position/(stride*g.axes[g.axis].Size)*stride + position%stride
}

// members returns the devices of a group.
func (g meshGroups) members(group int) []int {
	stride, size := g.stride(g.axis), g.axes[g.axis].Size
	list := make([]int, size)
	for i := range list {
		list[i] = group/stride*stride*size + i*stride + group%stride
	}
	return list
}

// shown returns the groups. If they are many, it returns the first ones and the last,
// because sets writes only these.
func (g meshGroups) shown() [][]int {
	count := 1
	for i, a := range g.axes {
		if i != g.axis {
			count *= a.Size
		}
	}
	list := make([][]int, min(count, maxLines+1))
	for i := range list {
		list[i] = g.members(i)
	}
	list[len(list)-1] = g.members(count - 1)
	return list
}

// block draws the mesh. Its last axis runs across, all others run down.
func (g meshGroups) block() block {
	last := len(g.axes) - 1
	width, height := g.axes[last].Size, g.stride(0)*g.axes[0].Size/g.axes[last].Size
	b := block{head: []string{"over " + wording.Plain(g.axes[g.axis].Name)}}
	for _, j := range drawing.Shown(width, maxLines) {
		b.cols = append(b.cols, coordinate(g.axes[last], j))
	}
	for _, i := range drawing.Shown(height, maxLines) {
		label, rest := "⋮", i
		if i != drawing.Gap {
			label = ""
			for n := last - 1; n >= 0; n-- {
				label = coordinate(g.axes[n], rest%g.axes[n].Size) + " " + label
				rest /= g.axes[n].Size
			}
		}
		b.rows = append(b.rows, strings.TrimSpace(label))
		var row []cell
		for _, j := range drawing.Shown(width, maxLines) {
			c := cell{lines: []string{omission}}
			if i != drawing.Gap && j != drawing.Gap {
				position := i*width + j
				c = cell{lines: []string{strconv.Itoa(position)}, hue: hue(g.group(position) + 1)}
			}
			row = append(row, c)
		}
		b.cells = append(b.cells, row)
	}
	return b
}

// coordinate writes a position along an axis: "data 3".
func coordinate(a mesh.Axis, i int) string {
	if i == drawing.Gap {
		return "⋯"
	}
	return wording.Plain(a.Name) + " " + strconv.Itoa(i)
}
