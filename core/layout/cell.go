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
		write(fmt.Sprintf("p%d…p%d", c.processes[0], c.processes[n-1]), c.devices(l, nil))
		return out
	}
	for i, p := range c.processes {
		write("p"+strconv.Itoa(p), c.devices(l, &c.processes[i]))
	}
	return out
}

// devices lists the ids of the devices, part by part, of one process or all.
// Parts of which a process has none are a "-", or "…" where several follow.
func (c cell) devices(l *Layout, process *int) string {
	var list []string
	for i, part := range c.parts {
		ids := idsOf(l, part, process)
		switch {
		case len(ids) > 0:
			list = append(list, idList(ids))
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

func idsOf(l *Layout, part []int32, process *int) []int {
	var ids []int
	for _, position := range part {
		if d := l.mesh.Device(int(position)); process == nil || d.Process == *process {
			ids = append(ids, d.ID)
		}
	}
	return ids
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
func idList(ids []int) string {
	switch n := len(ids); {
	case n == 0:
		return "-"
	case n > 4:
		return fmt.Sprintf("%d=…=%d", ids[0], ids[n-1])
	}
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.Itoa(id)
	}
	return strings.Join(parts, "=")
}
