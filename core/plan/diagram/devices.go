package diagram

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// uniform makes a mesh on one process. The device at position i has the id i. An error
// names path, a JSON Pointer into the spec.
func uniform(path string, axes []mesh.Axis) (*mesh.Mesh, error) {
	m, err := mesh.Uniform(axes, 1)
	if err != nil {
		return nil, at(path, err)
	}
	return m, nil
}

// at converts an error of another package into an error of a diagram with a path.
func at(path string, err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return invalid(path, "%v", err)
	}
	found := invalid(path, "%s", e.Msg)
	found.Hint = e.Hint
	return found
}

// listed joins numbers. If there are more than most, it leaves out numbers before the last.
func listed(numbers []int, most int, separator string) string {
	var parts []string
	for _, i := range drawing.Shown(len(numbers), most) {
		if i == drawing.Gap {
			parts = append(parts, "…")
		} else {
			parts = append(parts, strconv.Itoa(numbers[i]))
		}
	}
	return strings.Join(parts, separator)
}

// few returns how many of n elements to list: all if n is at most maxLines, and otherwise
// half of maxLines.
func few(n int) int {
	if n > maxLines {
		return maxLines / 2
	}
	return n
}

// set writes a group of devices: {0, 2, 4, 6}.
func set(devices []int) string { return "{" + listed(devices, few(len(devices)), ", ") + "}" }

// sets writes the first groups of devices, and the last.
func sets(groups [][]int) string {
	var parts []string
	for _, i := range drawing.Shown(len(groups), few(len(groups))) {
		if i == drawing.Gap {
			parts = append(parts, "…")
		} else {
			parts = append(parts, set(groups[i]))
		}
	}
	return strings.Join(parts, " ")
}

// span writes the range of part i of a size that is split into equal parts: 32:64.
func span(i, parts, size int) string {
	step := size / parts
	return wording.Span(i*step, (i+1)*step)
}

// axisNames joins the names of axes.
func axisNames(axes []string) string {
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = wording.Plain(a)
	}
	return strings.Join(names, ", ")
}

// without returns the axes of list that are not in others.
func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(a string) bool { return slices.Contains(others, a) })
}
