package diagram

import (
	"fmt"
	"strconv"

	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Collective is a collective operation of a group of devices, step by step.
type Collective struct {
	Op        collective.Op
	Algorithm collective.Algorithm // "" for the first of collective.Algorithms
	Devices   int
	Bytes     int64  // bytes of the array; 0 to draw parts without sizes
	Device    string // name of the kind of the devices, for the time; "" for no time
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
	costs, err := p.costs()
	if err != nil {
		return nil, err
	}
	blocks := flow{values("before", start, nil)}
	for i, state := range states {
		b := values(fmt.Sprintf("step %d", i+1), state, steps[i])
		if p.Bytes > 0 {
			b.head = append(b.head, p.traffic(steps[i], slots))
			blocks[0].head = []string{"before", ""}
		}
		blocks = append(blocks, b)
	}
	d.add(note{plain, meanings[p.Op]}, note{muted, about})
	for _, text := range costs {
		d.about += " " + text
		d.add(note{muted, text})
	}
	d.add(space(8), blocks, space(4),
		note{muted, "A row is a device, a column a part of the array. What a step has changed is marked."})
	return d, nil
}

// traffic says over how many links a step sends, and what the busiest link carries.
func (p Collective) traffic(step collective.Step, slots int64) string {
	parts, most := map[[2]int]int64{}, int64(0)
	for _, t := range step {
		link := [2]int{t.From, t.To}
		parts[link]++
		most = max(most, parts[link])
	}
	part := (p.Bytes + slots - 1) / slots
	return fmt.Sprintf("%s × %s", wording.Count(int64(len(parts)), "link", "links"), wording.Bytes(min(p.Bytes, most*part)))
}

// costs says how many bytes the busiest device sends, and how long the operation takes
// over the links of the kind of devices.
func (p Collective) costs() ([]string, error) {
	switch {
	case p.Bytes < 0 || p.Bytes > collective.MaxBytes:
		return nil, invalid("/bytes", "an array has %d bytes, but must have 0 to 2^53", p.Bytes).WithHint("name the size of the whole array in bytes")
	case p.Bytes == 0 && p.Device != "":
		return nil, invalid("/bytes", "a time needs the size of the array").WithHint("name its bytes")
	case p.Bytes == 0:
		return nil, nil
	}
	cost, err := collective.NewCost(p.Op, p.Algorithm, p.Devices, p.Bytes, hardware.Link{})
	if err != nil {
		return nil, at("", err)
	}
	list := []string{fmt.Sprintf("The array has %s, and the busiest device sends %s. A step names its links, and what the busiest link carries.", wording.Bytes(p.Bytes), wording.Bytes(cost.Sent))}
	if p.Device == "" {
		return list, nil
	}
	kind, err := hardware.Find(p.Device)
	if err != nil {
		return nil, invalid("/device", "there is no device kind %s", wording.Quote(p.Device)).WithHint("use one of %s", wording.QuotedList(hardware.Similar(p.Device)))
	}
	cluster, err := kind.Cluster(kind.PerNode, 0)
	if err != nil {
		return nil, at("/device", err)
	}
	node, where := p.oneLink(cluster)
	for _, l := range []struct {
		link  hardware.Link
		where string
	}{{node, where}, {cluster.Network, "over the network, with one device per node"}} {
		cost, err := collective.NewCost(p.Op, p.Algorithm, p.Devices, p.Bytes, l.link)
		if err != nil {
			return nil, at("", err)
		}
		if !l.link.Known() {
			list = append(list, fmt.Sprintf("%s %s: no time is known.", kind.Name, l.where))
			continue
		}
		list = append(list, fmt.Sprintf("%s %s: %s, at %s/s per device and %s per step.", kind.Name, l.where, wording.Seconds(cost.Ns),
			strconv.FormatFloat(float64(l.link.BytesPerSecond)/1e9, 'g', 3, 64)+" GB", wording.Seconds(l.link.LatencyNs)))
	}
	return append(list, "Times are lower bounds, at the full rate of the links."), nil
}

// oneLink returns what the operation uses of the links in a node. In a torus, a ring is
// along one dimension; where messages share its links, the time is unknown.
func (p Collective) oneLink(c *hardware.Cluster) (hardware.Link, string) {
	link, dimensions := c.Node, int64(c.Topology.Dimensions())
	if dimensions == 0 {
		return link, "in a node"
	}
	link.BytesPerSecond /= 2 * dimensions
	switch {
	case p.Algorithm == collective.Bidirectional:
		link.BytesPerSecond *= 2
	case p.Algorithm != collective.Ring && p.Op != collective.Permute:
		return hardware.Link{}, "in a slice, where messages of this algorithm share links"
	}
	return link, "along one dimension of a slice"
}

// values draws the values of all devices, and marks the values that the step has changed.
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
