package diagram

import (
	"fmt"
	"strconv"

	"github.com/meshfeed/meshfeed/core/collective"
	"github.com/meshfeed/meshfeed/core/hardware"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Collective is a collective operation of a group of devices, step by step.
type Collective struct {
	Op        collective.Op
	Algorithm collective.Algorithm // "" for the first of collective.Algorithms
	Devices   int
}

// meanings says what each operation does to the arrays of the devices.
var meanings = map[collective.Op]string{
	collective.AllGather:     "Every device has one part of the array before, and all parts after.",
	collective.ReduceScatter: "Every device has an array before, and its part of the sum of all arrays after.",
	collective.AllReduce:     "Every device has an array before, and the sum of all arrays after.",
	collective.AllToAll:      "Every device sends part i of its array to device i.",
	collective.Permute:       "Every device passes its array to the next one.",
	collective.Broadcast:     "Device 0 has an array before, and every device has it after.",
}

// Draw draws the values of all devices before the operation and after each step.
func (p Collective) Draw() (*Diagram, error) {
	algorithms := collective.Algorithms(p.Op)
	if algorithms == nil {
		return nil, invalid("/op", "there is no operation %s", wording.Quote(string(p.Op))).WithHint("%s", wording.Suggest(string(p.Op), collective.Ops()))
	}
	if p.Algorithm == "" {
		p.Algorithm = algorithms[0]
	}
	if p.Devices < 1 || p.Devices > maxLines {
		return nil, invalid("/devices", "the values of %d devices cannot be drawn", p.Devices).WithHint("use 1 to %d; a larger group works alike", maxLines)
	}
	start, err := collective.Start(p.Op, p.Algorithm, p.Devices)
	if err != nil {
		return nil, at("/algorithm", err)
	}
	states, err := collective.Trace(p.Op, p.Algorithm, start)
	if err != nil {
		return nil, at("/algorithm", err)
	}
	steps, err := collective.Steps(p.Op, p.Algorithm, p.Devices)
	if err != nil {
		return nil, at("/algorithm", err)
	}
	d := &Diagram{title: fmt.Sprintf("%s of %s (%s)", p.Op, wording.Count(int64(p.Devices), "device", "devices"), p.Algorithm)}
	slots := int64(len(start[0]))
	cost, err := collective.NewCost(p.Op, p.Algorithm, p.Devices, slots, hardware.Link{})
	if err != nil {
		return nil, at("", err)
	}
	about := fmt.Sprintf("In %s, the busiest device sends %s. The array has %s.", wording.Count(int64(cost.Steps), "step", "steps"),
		wording.Count(cost.Sent, "part", "parts"), wording.Count(slots, "part", "parts"))
	d.about = fmt.Sprintf("%s. %s %s", d.title, meanings[p.Op], about)
	blocks := flow{values("before", start, nil)}
	for i, state := range states {
		blocks = append(blocks, values(fmt.Sprintf("step %d", i+1), state, steps[i]))
	}
	d.add(note{plain, meanings[p.Op]}, note{muted, about}, space(8), blocks, space(4),
		note{muted, "A row is a device, a column a part of the array. What a step has changed is marked."})
	return d, nil
}

// values draws the values of all devices, and marks those that the step has changed.
func values(title string, state collective.State, step collective.Step) block {
	b := block{head: []string{title}}
	changed := map[[2]int]bool{}
	for _, t := range step {
		changed[[2]int{t.To, t.Slot}] = true
	}
	for i, slots := range state {
		b.rows = append(b.rows, strconv.Itoa(i))
		var row []cell
		for k, v := range slots {
			c := cell{lines: []string{"·"}, hue: hue(i + 1), mark: changed[[2]int{i, k}]}
			if v.Present {
				c.lines[0] = strconv.FormatInt(v.Number, 10)
			}
			row = append(row, c)
		}
		b.cells = append(b.cells, row)
	}
	return b
}
