package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// maxLines bounds the lines of a cell; more processes share one line.
const maxLines = 8

// lines writes what stands in a cell: a line for every process, with its
// devices of each part: "p0 0=1|2=3". Split puts the process above its
// devices; brief makes one line of several processes: "p0…p3 0=…=31".
func (c cell) lines(l *Layout, split, brief bool) []string {
	var out []string
	write := func(process, devices string) {
		lines := broken(devices)
		if split {
			out = append(out, process)
		} else {
			lines[0] = process + " " + lines[0]
		}
		out = append(out, lines...)
	}
	n := len(c.processes)
	if n > maxLines || brief && n > 1 {
		write(fmt.Sprintf("p%d…p%d", c.processes[0], c.processes[n-1]), c.devices(l, c.parts))
		return out
	}
	for _, p := range c.processes {
		write("p"+strconv.Itoa(p), c.devices(l, c.partsOf(l, p)))
	}
	return out
}

// partsOf gives what a process holds of every part.
func (c cell) partsOf(l *Layout, process int) [][]int32 {
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

// devices lists the ids of the devices that hold each part. Parts that none
// holds are a "-", or "…" where several follow.
func (c cell) devices(l *Layout, parts [][]int32) string {
	var list []string
	for i, part := range parts {
		switch {
		case len(part) > 0:
			list = append(list, idList(l, part))
		case i > 0 && (list[len(list)-1] == "-" || list[len(list)-1] == "…"):
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

// broken breaks a list of parts that is too long for a line.
func broken(parts string) []string {
	const most = 32
	var lines []string
	line := ""
	for part := range strings.SplitAfterSeq(parts, "|") {
		if line != "" && runes(line)+runes(part) > most {
			lines = append(lines, line)
			line = ""
		}
		line += part
	}
	return append(lines, line)
}

// idList joins devices that hold the same by "=".
func idList(l *Layout, positions []int32) string {
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
