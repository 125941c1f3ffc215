package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// PictureOptions chooses what a picture shows.
type PictureOptions struct {
	Width int    // of a text in characters; 0 for 80
	Array string // the only array to draw; "" for all, with the processes and the problems
	Dims  []int  // the two dimensions to draw, first the one that runs down; nil for the first two that are cut
}

// PictureDims gives how many dimensions there are to choose from, those of the array or
// of the one with the most, and says whether Dims are two different ones of them.
// Where several arrays are drawn, some may lack them.
func (l *Layout) PictureDims(o PictureOptions) (rank int, ok bool) {
	for _, a := range l.arrays {
		if o.Array == "" || o.Array == a.Name {
			rank = max(rank, len(a.Shape))
		}
	}
	return rank, len(o.Dims) == 2 && o.Dims[0] != o.Dims[1] && slices.Min(o.Dims) >= 0 && slices.Max(o.Dims) < rank
}

// Text draws the layout for a person in front of a terminal: who holds which
// part of every array, which rows every process reads, the bytes, and what is
// wrong. Arrays that are cut alike share one drawing. For up to 64 devices every
// cell is drawn, in 80 columns; larger meshes are summarised.
func (l *Layout) Text(o PictureOptions) string {
	if o.Width <= 0 {
		o.Width = 80
	}
	t := &page{Layout: l, PictureOptions: o}
	groups := l.groups()
	if o.Array != "" {
		i := slices.IndexFunc(l.arrays, func(a Array) bool { return a.Name == o.Array })
		if i < 0 {
			return fmt.Sprintf("there is no array %s\n", quote(o.Array))
		}
		t.group([]int{i})
		t.legend()
		return t.out.String()
	}
	t.head()
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

// maxGroups bounds the drawings of one picture.
const maxGroups = 16

func moreText(groups [][]int) string {
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	return fmt.Sprintf("… and %s, which can be drawn by name", count(int64(n), "more array", "more arrays"))
}

// page is a text in the making.
type page struct {
	*Layout
	PictureOptions
	out  strings.Builder
	used struct{ replicas, parts bool } // signs that need a word
}

// groups lists the arrays that are cut alike together, in order.
func (l *Layout) groups() [][]int {
	return l.grouped(func(i int) (string, bool) { return l.look(i), true })
}

// look tells arrays apart whose drawings differ.
func (l *Layout) look(i int) string {
	a, t := l.arrays[i], l.tilings[i]
	if a.Sharding == nil {
		return fmt.Sprint("broken ", i)
	}
	key := tilingKey(t)
	for d, k := range t.Tiles() {
		if k > 1 || d == 0 {
			key += fmt.Sprintf(",%d:%d/%d", d, a.Shape[d], k)
		}
	}
	return key
}

// line writes a line, wrapped at the width; later lines are indented.
func (t *page) line(indent int, pieces ...string) {
	line := ""
	for i, p := range pieces {
		switch {
		case i == 0:
			line = p
		case runes(line)+2+runes(p) > t.Width:
			t.out.WriteString(line + "\n")
			line = strings.Repeat(" ", indent) + p
		default:
			line += "  " + p
		}
	}
	t.out.WriteString(line + "\n")
}

func (t *page) head() {
	for _, pieces := range t.headLines() {
		t.line(2, pieces...)
	}
}

// headLines says what the whole is: mesh, epoch, bytes.
func (t *page) headLines() [][]string {
	lines := [][]string{{plain(t.mesh.String()), count(int64(t.mesh.Size()), "device", "devices"), count(int64(len(t.processes)), "process", "processes")}}
	if b := t.doc.Batch; b != nil {
		size := "batch " + thousands(t.BatchSize())
		if len(b.Size) > 1 {
			size += " = " + strings.ReplaceAll(strings.Trim(fmt.Sprint(b.Size), "[]"), " ", " × ")
		}
		lines = append(lines, append([]string{size}, t.epoch()...))
	}
	c := t.costs.totals
	if !t.costs.known {
		return lines
	}
	if t.doc.Batch == nil {
		return append(lines, []string{within(c.DeviceBytes, t.doc.Budget.DeviceBytes) + " per device"})
	}
	pieces := []string{bytesText(c.BatchBytes) + " per batch"}
	if c.ReadBytes > c.BatchBytes && c.BatchBytes > 0 {
		pieces[0] += fmt.Sprintf(", read %s", times(c.ReadBytes, c.BatchBytes))
	}
	batches := count(int64(t.Prefetch())+1, "batch", "batches")
	if t.Loading() == LoadGlobal {
		batches += " and a whole one"
	}
	lines = append(lines, append(pieces, within(c.DeviceBytes, t.doc.Budget.DeviceBytes)+" per device",
		fmt.Sprintf("%s per process for %s", within(c.HostBytes, t.doc.Budget.HostBytes), batches)))
	if how := t.loadingPieces(); how != nil {
		lines = append(lines, how)
	}
	return lines
}

// epoch says in words what an epoch is.
func (t *page) epoch() []string {
	d, c := t.doc.Dataset, t.costs.totals
	if d == nil {
		return nil
	}
	pieces := []string{count(d.Records, "record", "records"), count(c.StepsPerEpoch, "step", "steps") + " per epoch"}
	switch {
	case c.RemainderRecords == 0:
		return pieces
	case t.Remainder() == Pad:
		return append(pieces, "the last one with "+count(c.RemainderRecords, "record", "records"))
	}
	return append(pieces, count(c.RemainderRecords, "record", "records")+" left out")
}

// within writes a size and its budget, if there is one.
func within(bytes, budget int64) string {
	if budget == 0 {
		return bytesText(bytes)
	}
	return bytesText(bytes) + " of " + bytesText(budget)
}

// group draws arrays that are cut alike.
func (t *page) group(arrays []int) {
	for i, n := range arrays {
		if i == 8 && len(arrays) > 10 {
			t.line(0, fmt.Sprintf("… and %d more that are cut alike", len(arrays)-i))
			break
		}
		t.title(t.arrays[n], t.tilings[n])
	}
	if first := arrays[0]; t.arrays[first].Sharding != nil {
		table := t.fit(first)
		t.sides(table.grid)
		table.draw(&t.out)
		t.used.replicas = t.used.replicas || table.replicas > 1
		t.used.parts = t.used.parts || len(table.inner) > 0
	}
}

func (t *page) title(a Array, cut sharding.Tiling) { t.line(2, t.titlePieces(a, cut)...) }

// titlePieces says what an array is: its name, its type and shape, and more.
func (t *page) titlePieces(a Array, cut sharding.Tiling) []string {
	pieces := []string{plain(a.Name), a.Type.String() + " " + shapeText(a.Shape)}
	if a.Sharding == nil {
		return append(pieces, "cannot be sharded; see below")
	}
	pieces = append(pieces, plain(a.Sharding.Spec().String()), "shard "+shapeText(cut.Index(0).Shape()), bytesText(shardBytes(a, cut)))
	if r := t.mesh.Size() / cut.Count(); r > 1 {
		pieces = append(pieces, fmt.Sprintf("on %s devices", thousands(int64(r))))
	}
	if a.Columns != nil {
		pieces = append(pieces, fmt.Sprintf("columns %s of %s", spansText(a.Columns), plain(a.Field)))
	} else if a.Kind == Data && a.Field != a.Name {
		pieces = append(pieces, "from "+plain(a.Field))
	}
	return pieces
}

// sides says which dimension runs along which side.
func (t *page) sides(g *grid) {
	pieces := g.sidePieces()
	t.line(2, append([]string{"  " + pieces[0]}, pieces[1:]...)...)
}

func (g *grid) sidePieces() []string {
	var pieces []string
	switch {
	case g.folded:
		pieces = append(pieces, "↵ "+g.down.title()+", line by line")
	case g.down.dim >= 0 && g.down.tiles > 1:
		pieces = append(pieces, "↓ "+g.down.title())
	case g.across.dim < 0:
		pieces = append(pieces, "not partitioned")
	}
	if g.across.dim >= 0 {
		pieces = append(pieces, "→ "+g.across.title())
	}
	for _, s := range g.inner {
		pieces = append(pieces, "| "+s.title())
	}
	return pieces
}

func (s side) title() string {
	names := make([]string, len(s.axes))
	for i, a := range s.axes {
		names[i] = plain(a)
	}
	if len(names) == 0 {
		return fmt.Sprintf("dimension %d", s.dim)
	}
	return fmt.Sprintf("dimension %d over %s", s.dim, strings.Join(names, ", "))
}

// fit chooses how to draw an array within the width: in the loosest style that
// fits, else with the sides exchanged, else in part.
func (t *page) fit(array int) *table {
	h := t.holders(array)
	most := maxSide
	if t.mesh.Size() <= roomy {
		most = roomy
	}
	for limit := most; limit > 1; limit = min(limit-1, maxSide) {
		for _, swap := range []bool{false, true} {
			g := t.gridOf(h, t.Dims, limit, swap)
			if swap && (g.folded || g.down.dim < 0 || limit < most || t.Dims != nil) {
				continue
			}
			for _, s := range styles {
				if table := g.table(t.Layout, s); table.total() <= t.Width {
					return table
				}
			}
		}
	}
	return t.gridOf(h, t.Dims, 1, false).table(t.Layout, style{split: true, pad: 1})
}

// legend explains the signs that were used.
func (t *page) legend() {
	if !slices.ContainsFunc(t.arrays, func(a Array) bool { return a.Sharding != nil }) {
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
