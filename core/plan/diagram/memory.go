package diagram

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Memory compares how devices use their memory.
type Memory struct {
	Title    string
	Capacity int64 // bytes of a device's memory; 0 if not known
	Bars     []MemoryBar
}

// MemoryBar is what fills the memory of a device.
type MemoryBar struct {
	Label  string
	Memory strategy.Memory
}

// MaxBars bounds the bars of a diagram.
const MaxBars = 64

var memoryKinds = []kind{
	{name: "weights", sign: 'W', hue: 1},
	{name: "gradients", sign: 'G', hue: 3},
	{name: "optimizer", sign: 'O', hue: 5},
	{name: "activations", sign: 'A', hue: 2},
	{name: "buffers", sign: 'B', hue: 4},
}

// title names the model of a report and the devices.
func title(r *strategy.Report) string {
	return fmt.Sprintf("Memory of a device: %s on %s", wording.Plain(r.Model.Name), wording.Count(int64(r.Devices), "device", "devices"))
}

// StageMemory returns a bar for a device of each pipeline stage of the best candidate.
func StageMemory(r *strategy.Report) Memory {
	m := Memory{Title: title(r)}
	for _, s := range r.Stages[:min(len(r.Stages), MaxBars)] {
		m.Capacity = s.Memory.Capacity
		m.Bars = append(m.Bars, MemoryBar{"stage " + strconv.Itoa(s.Number), s.Memory})
	}
	return m
}

// CandidateMemory returns a bar for a device of each candidate. The device is one of the
// pipeline stage that needs most.
func CandidateMemory(r *strategy.Report) Memory {
	m := Memory{Title: title(r)}
	for _, c := range r.Candidates[:min(len(r.Candidates), MaxBars)] {
		m.Capacity = c.Memory.Capacity
		m.Bars = append(m.Bars, MemoryBar{candidateName(c), c.Memory})
	}
	return m
}

// candidateName writes the mesh and the settings of a candidate: "data 2 tensor 4 ZeRO-1".
func candidateName(c strategy.Candidate) string {
	var parts []string
	for _, a := range c.Mesh {
		parts = append(parts, fmt.Sprintf("%s %d", wording.Plain(a.Name), a.Size))
	}
	if parts == nil {
		parts = []string{"one device"}
	}
	if c.ZeRO > 0 {
		parts = append(parts, fmt.Sprintf("ZeRO-%d", c.ZeRO))
	}
	if c.Recomputation != strategy.None {
		parts = append(parts, c.Recomputation)
	}
	return strings.Join(parts, " ")
}

// Draw draws a bar for each device.
func (p Memory) Draw() (*Diagram, error) {
	if len(p.Bars) == 0 || len(p.Bars) > MaxBars {
		return nil, invalid("/bars", "expected 1 to %d bars, but found %d", MaxBars, len(p.Bars))
	}
	d := &Diagram{title: p.Title}
	d.about = d.title + "."
	if p.Capacity > 0 {
		capacity := fmt.Sprintf("A device has %s.", decimal(p.Capacity))
		d.about += " " + capacity
		d.add(note{muted, capacity})
	}
	b := &bars{kinds: memoryKinds, size: p.Capacity, mark: p.Capacity}
	for _, r := range p.Bars {
		m := r.Memory
		parts := []int64{m.Weights, m.Gradients, m.Optimizer, m.Activations, m.Buffers}
		total := int64(0)
		for _, n := range parts {
			total += n
		}
		text := decimal(total)
		if p.Capacity > 0 && total > p.Capacity {
			text += ", " + decimal(total-p.Capacity) + " too much"
		}
		d.about += fmt.Sprintf(" %s: %s.", wording.Plain(r.Label), text)
		b.size = max(b.size, total)
		b.bars = append(b.bars, bar{label: wording.Plain(r.Label), parts: parts, text: text})
	}
	d.add(space(8), b)
	return d, nil
}

// decimal writes bytes in powers of 1000, as data sheets do for devices: 61.2 GB.
func decimal(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1000, 0
	for f >= 999.5 && unit < 4 {
		f /= 1000
		unit++
	}
	digits := 1
	if f >= 100 {
		digits = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', digits, 64), ".0") + " " + []string{"kB", "MB", "GB", "TB", "PB"}[unit]
}
