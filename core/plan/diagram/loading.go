package diagram

import (
	"fmt"
	"strconv"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Loading compares the ways of loading the batches of a layout. It ignores the way that
// the layout itself selects.
type Loading struct{ Layout *layout.Document }

// ways describes the ways of loading.
var ways = []struct{ name, about string }{
	{layout.LoadProcess, "process (the default): every process reads what its devices need, once"},
	{layout.LoadGlobal, "global: every process reads the whole batch and keeps its part"},
	{layout.LoadDevice, "device: the part of every device is read by itself"},
	{layout.LoadReshard, "reshard: the batch is read in equal parts, which then move between devices"},
}

// Indices of loadingKinds.
const (
	kept = iota
	again
	discarded
	received
)

// loadingKinds lists the kinds of bytes of a process.
var loadingKinds = []kind{
	{name: "read and used", sign: '█', hue: 1},
	{name: "read again for another device", sign: '▓', hue: 2},
	{name: "read and thrown away", sign: '░', hue: 7, faint: true},
	{name: "received from other devices", sign: '▒', hue: 3},
}

// Draw draws what every process reads, throws away and receives in one step.
func (p Loading) Draw() (*Diagram, error) {
	layouts, err := p.layouts()
	if err != nil {
		return nil, err
	}
	l := layouts[0]
	d := &Diagram{title: fmt.Sprintf("Ways to load a batch of %s", wording.Count(l.BatchSize(), "row", "rows"))}
	b := bars{kinds: loadingKinds}
	d.about = fmt.Sprintf("%s on %s.", d.title, wording.Plain(l.Mesh().String()))
	for i, way := range ways {
		if !layouts[i].Totals().Known() {
			b.bars = append(b.bars, bar{heading: way.about, about: "not possible here: " + firstError(layouts[i]).Message})
			continue
		}
		total := totals(layouts[i], l)
		d.about += fmt.Sprintf(" With %s. In total, %s.", way.about, total)
		list := processBars(layouts[i], l)
		list[0].heading, list[0].about = way.about, total
		b.bars = append(b.bars, list...)
	}
	for _, r := range b.bars {
		sum := int64(0)
		for _, bytes := range r.parts {
			sum += bytes
		}
		b.size = max(b.size, sum)
	}
	d.add(note{muted, fmt.Sprintf("%s, %s, one step", wording.Plain(l.Mesh().String()), wording.Count(int64(len(l.Mesh().Processes())), "process", "processes"))}, &b)
	return d, nil
}

// layouts returns the layout with each of the ways of loading. The costs of the first one
// are known.
func (p Loading) layouts() ([]*layout.Layout, error) {
	list := make([]*layout.Layout, len(ways))
	for i, way := range ways {
		doc := *p.Layout
		doc.Loading = way.name
		l, err := layout.Draft(&doc)
		if err != nil {
			return nil, at("", err)
		}
		if l.BatchShape() == nil {
			return nil, invalid("", "the layout has no batch, so nothing is loaded").WithHint("add a batch")
		}
		list[i] = l
	}
	if !list[0].Totals().Known() {
		problem := firstError(list[0])
		return nil, invalid(problem.Path, "%s", problem.Message).WithHint("%s", problem.Hint)
	}
	return list, nil
}

// firstError returns the first error of a layout with unknown costs. Without an error, the
// mesh is too large, and the returned problem says so.
func firstError(l *layout.Layout) problem.Problem {
	for _, p := range l.Problems() {
		if p.Severity == problem.Error {
			return p
		}
	}
	return problem.Problem{Message: "the mesh is too large to count its bytes"}
}

// processBars makes a bar for each process of a layout, and a line for processes left out.
func processBars(l, need *layout.Layout) []bar {
	processes := l.Mesh().Processes()
	shown := len(processes)
	if shown > maxLines {
		shown = maxLines - 1
	}
	list, texts := make([]bar, shown), make([][]string, shown)
	for n, process := range processes[:shown] {
		costs := l.ProcessCosts(n)
		list[n] = processBar(l, need, n)
		list[n].label = "p" + strconv.Itoa(process)
		texts[n] = []string{"rows " + rowSpans(costs.Rows), wording.Bytes(costs.ReadBytes)}
	}
	for n, text := range drawing.Columns(texts, "<>") {
		list[n].text = text
	}
	if rest := len(processes) - shown; rest > 0 {
		list = append(list, bar{text: fmt.Sprintf("… and %d more processes", rest)})
	}
	return list
}

// processBar makes the bar of the n-th process. need is the same layout with the way of
// loading that reads only what each process needs, once.
func processBar(l, need *layout.Layout, n int) bar {
	costs, least := l.ProcessCosts(n), need.ProcessCosts(n).ReadBytes
	r := bar{parts: make([]int64, len(loadingKinds))}
	switch l.Loading() {
	case layout.LoadGlobal:
		r.parts[kept], r.parts[discarded] = least, costs.ReadBytes-least
	case layout.LoadDevice:
		r.parts[kept], r.parts[again] = least, costs.ReadBytes-least
	default:
		r.parts[kept], r.parts[received] = costs.ReadBytes, costs.InterconnectBytes
	}
	return r
}

// rowSpans writes the first ranges of rows.
func rowSpans(rows [][2]int) string {
	text := ""
	for k, i := range drawing.Shown(len(rows), 3) {
		if k > 0 {
			text += " "
		}
		if i == drawing.Gap {
			text += "…"
		} else {
			text += wording.Span(rows[i][0], rows[i][1])
		}
	}
	return text
}

// totals describes the bytes of all processes. need is as for processBar.
func totals(l, need *layout.Layout) string {
	t, least := l.Totals(), need.Totals().ReadBytes
	text := "all processes read " + wording.Bytes(t.ReadBytes)
	if t.BatchBytes > 0 && t.ReadBytes > t.BatchBytes {
		text += ", the batch " + wording.Times(t.ReadBytes, t.BatchBytes)
	}
	if l.Loading() == layout.LoadGlobal {
		text += fmt.Sprintf(", and throw %s away", wording.Bytes(t.ReadBytes-least))
	}
	if l.Loading() == layout.LoadReshard {
		text += fmt.Sprintf(", and %s move, of which %s between processes", wording.Bytes(t.InterconnectBytes), wording.Bytes(t.NetworkBytes))
	}
	return text
}
