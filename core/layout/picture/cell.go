package picture

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
)

// maxLines bounds the processes with lines of their own. In a cell with more, all
// processes share one line.
const maxLines = 8

// cellLines returns the lines of a cell in a text picture: one for every process,
// such as "p0 0=1|2=3". Here devices 0 and 1 hold the first part, 2 and 3 the
// second. If split is true, each process is on the line above its devices. In a
// large mesh, all processes of the cell share one line: "p0…p3 0=…=31".
func (l *view) cellLines(c cell, split bool) []string {
	var out []string
	write := func(process, devices string) {
		lines := breakParts(devices)
		if split {
			out = append(out, process)
		} else {
			lines[0] = process + " " + lines[0]
		}
		out = append(out, lines...)
	}
	if l.summarized(c) {
		write(c.processRange(), l.devices(c, c.parts))
		return out
	}
	for _, p := range c.processes {
		write("p"+strconv.Itoa(p), l.devices(c, l.partsOf(c, p)))
	}
	return out
}

// summarized reports whether the processes of a cell are drawn as one.
func (l *view) summarized(c cell) bool {
	n := len(c.processes)
	return n > maxLines || l.mesh.Size() > fewDevices && n > 1
}

// processRange writes the first and the last process of a cell.
func (c cell) processRange() string {
	return fmt.Sprintf("p%d…p%d", c.processes[0], c.processes[len(c.processes)-1])
}

// partsOf returns, for each part, the mesh positions of a process that hold it.
func (l *view) partsOf(c cell, process int) [][]int32 {
	if len(c.processes) == 1 {
		return c.parts
	}
	parts := make([][]int32, len(c.parts))
	for i, part := range c.parts {
		for _, position := range part {
			if l.mesh.Device(int(position)).Process == process {
				parts[i] = append(parts[i], position)
			}
		}
	}
	return parts
}

// devices lists the ids of the devices that hold each part. A part without
// positions is "-", and two or more such parts in a row are "…".
func (l *view) devices(c cell, parts [][]int32) string {
	var list []string
	for i, part := range parts {
		switch {
		case len(part) > 0:
			list = append(list, l.ids(part))
		case i > 0 && len(parts[i-1]) == 0:
			list[len(list)-1] = "…"
		default:
			list = append(list, "-")
		}
	}
	if c.left > 0 {
		list = append(list, "+"+strconv.Itoa(c.left))
	}
	return strings.Join(list, "|")
}

// breakParts breaks a list of parts into lines, between parts. A line has at most
// 32 characters, unless a single part is longer.
func breakParts(parts string) []string {
	const most = 32
	var lines []string
	line := ""
	for part := range strings.SplitAfterSeq(parts, "|") {
		if line != "" && drawing.Runes(line)+drawing.Runes(part) > most {
			lines = append(lines, line)
			line = ""
		}
		line += part
	}
	return append(lines, line)
}

// ids joins the ids of devices that hold the same part by "=".
func (l *view) ids(positions []int32) string {
	id := func(i int) string { return strconv.Itoa(l.mesh.Device(int(positions[i])).ID) }
	n := len(positions)
	if n > 4 {
		return id(0) + "=…=" + id(n-1)
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = id(i)
	}
	return strings.Join(ids, "=")
}
