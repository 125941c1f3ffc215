// Package picture draws layouts: as text for a terminal ([Text]), and as SVG
// for notebooks and reports ([SVG]).
//
// Both draw every array as a table of cells over two of its dimensions, with
// the devices and processes that hold each part. Arrays that are partitioned
// alike share one drawing. Below the arrays are the rows that each process reads,
// and the problems.
package picture

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Options says what a picture shows.
type Options struct {
	Width int    // width of a text in characters; 0 for 80; ignored by SVG
	Array string // the only array to draw; "" for all, with the processes and the problems
	Dims  []int  // the two dimensions to draw, first the one that runs down; nil for the first two that are partitioned
}

// Check returns an error if the layout has no such array, or if Dims are not two
// different dimensions of it. If the picture has several arrays, some may lack
// these dimensions.
func (o Options) Check(l *layout.Layout) error {
	rank, names := 0, []string{}
	for _, a := range l.Arrays() {
		names = append(names, a.Name)
		if o.Array == "" || o.Array == a.Name {
			rank = max(rank, len(a.Shape))
		}
	}
	switch {
	case o.Array != "" && !slices.Contains(names, o.Array):
		return status.Errorf(status.NotFound, "layout", "the layout has no array %s", wording.Quote(o.Array)).
			WithHint("its arrays: %s", wording.QuotedList(names))
	case o.Dims == nil, len(o.Dims) == 2 && o.Dims[0] != o.Dims[1] && slices.Min(o.Dims) >= 0 && slices.Max(o.Dims) < rank:
		return nil
	case rank < 2:
		return status.New(status.InvalidArgument, "layout", "dims are for arrays of two dimensions or more").WithHint("leave them out")
	}
	return status.Errorf(status.InvalidArgument, "layout", "expected dims to be two different dimensions from 0 to %d, but found %v", rank-1, o.Dims)
}

// view is a layout and what its drawings need often.
type view struct {
	*layout.Layout
	mesh      *mesh.Mesh
	processes []int // processes of the mesh
	arrays    []layout.Array
	totals    layout.Totals
	budget    layout.BudgetSpec
}

func newView(l *layout.Layout) *view {
	return &view{Layout: l, mesh: l.Mesh(), processes: l.Mesh().Processes(), arrays: l.Arrays(), totals: l.Totals(), budget: l.Document().Budget}
}

// Bounds of a picture.
const (
	maxGroups  = 16  // drawings of arrays
	fewDevices = 64  // the most devices of a mesh that is drawn cell by cell
	maxParts   = 4   // parts of a cell that are listed for a larger mesh
	maxSide    = 8   // tiles along a side that are drawn for a larger mesh
	maxPath    = 120 // bytes of a JSON Pointer
)

// find returns the number of the array with the name, or -1.
func (l *view) find(name string) int {
	return slices.IndexFunc(l.arrays, func(a layout.Array) bool { return a.Name == name })
}

// groups lists the arrays that have the same drawing together, in order.
func (l *view) groups() [][]int {
	return l.Grouped(func(i int) (string, bool) {
		a, t := l.arrays[i], l.Tiling(i)
		if a.Sharding == nil {
			return fmt.Sprint("broken ", i), true
		}
		key := fmt.Sprint(t.Weights())
		for d, k := range t.Tiles() {
			if k > 1 || d == 0 {
				key += fmt.Sprintf(",%d:%d/%d", d, a.Shape[d], k)
			}
		}
		return key, true
	})
}

// moreText stands for groups that are not drawn.
func moreText(groups [][]int) string {
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	return fmt.Sprintf("… and %s, which can be drawn by name", wording.Count(int64(n), "more array", "more arrays"))
}

// headLines describes the whole layout: mesh, epoch, bytes. Every line is a
// list of pieces. It may be broken between them.
func (l *view) headLines() [][]string {
	lines := [][]string{{wording.Plain(l.mesh.String()), wording.Count(int64(l.mesh.Size()), "device", "devices"), wording.Count(int64(len(l.processes)), "process", "processes")}}
	shape, t := l.BatchShape(), l.totals
	if shape != nil {
		size := "batch " + wording.Thousands(l.BatchSize())
		if len(shape) > 1 {
			size += " = " + strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", " × ")
		}
		lines = append(lines, append([]string{size}, l.epoch()...))
	}
	if !t.Known() {
		return lines
	}
	if shape == nil {
		return append(lines, []string{within(t.DeviceBytes, l.budget.DeviceBytes) + " per device"})
	}
	pieces := []string{wording.Bytes(t.BatchBytes) + " per batch"}
	if t.ReadBytes > t.BatchBytes && t.BatchBytes > 0 {
		pieces[0] += fmt.Sprintf(", read %s", wording.Times(t.ReadBytes, t.BatchBytes))
	}
	batches := wording.Count(int64(l.Prefetch())+1, "batch", "batches")
	if l.Loading() == layout.LoadGlobal {
		batches += " and a whole one"
	}
	lines = append(lines, append(pieces, within(t.DeviceBytes, l.budget.DeviceBytes)+" per device",
		fmt.Sprintf("%s per process for %s", within(t.HostBytes, l.budget.HostBytes), batches)))
	if loading := l.loading(); loading != nil {
		lines = append(lines, loading)
	}
	return lines
}

// epoch describes an epoch in words.
func (l *view) epoch() []string {
	d, t := l.Document().Dataset, l.totals
	if d == nil {
		return nil
	}
	pieces := []string{wording.Count(d.Records, "record", "records"), wording.Count(t.StepsPerEpoch, "step", "steps") + " per epoch"}
	switch {
	case t.RemainderRecords == 0:
		return pieces
	case l.Remainder() == layout.Pad:
		return append(pieces, "the last one with "+wording.Count(t.RemainderRecords, "record", "records"))
	}
	return append(pieces, wording.Count(t.RemainderRecords, "record", "records")+" left out")
}

// within writes a size and its budget, if there is one.
func within(bytes, budget int64) string {
	if budget == 0 {
		return wording.Bytes(bytes)
	}
	return wording.Bytes(bytes) + " of " + wording.Bytes(budget)
}

// loading describes a way of loading other than the default.
func (l *view) loading() []string {
	name := "loading " + wording.Quote(l.Loading())
	switch l.Loading() {
	case layout.LoadGlobal:
		return []string{name, "every process reads the whole batch and keeps its part"}
	case layout.LoadDevice:
		return []string{name, "every device's part is read by itself, replicas again"}
	case layout.LoadReshard:
		pieces := []string{name}
		if i := slices.IndexFunc(l.arrays, layout.Array.Resharded); i >= 0 {
			a := l.arrays[i]
			pieces = append(pieces, "the batch is read by "+wording.Plain(a.Delivered.Spec().String()))
		}
		return append(pieces, fmt.Sprintf("then at least %s move between devices", wording.Bytes(l.totals.InterconnectBytes)),
			wording.Bytes(l.totals.NetworkBytes)+" of them between processes")
	}
	return nil
}

// title describes an array: its name, its type and shape, and more.
func (l *view) title(array int) []string {
	a, t := l.arrays[array], l.Tiling(array)
	pieces := []string{wording.Plain(a.Name), a.Type.String() + " " + wording.Shape(a.Shape)}
	if a.Sharding == nil {
		return append(pieces, "cannot be sharded; see below")
	}
	pieces = append(pieces, wording.Plain(a.Sharding.Spec().String()), "shard "+wording.Shape(t.Index(0).Shape()), wording.Bytes(l.ShardBytes(array)))
	if r := l.mesh.Size() / t.Count(); r > 1 {
		pieces = append(pieces, fmt.Sprintf("on %s devices", wording.Thousands(int64(r))))
	}
	if a.Columns != nil {
		pieces = append(pieces, fmt.Sprintf("columns %s of %s", spansText(a.Columns), wording.Plain(a.Field)))
	} else if a.Kind == layout.Data && a.Field != a.Name {
		pieces = append(pieces, "from "+wording.Plain(a.Field))
	}
	return pieces
}

// grids yields the grids to try for an array, from the best to the smallest: for
// each limit on the tiles across, the grid and, for the first limit, the grid
// with exchanged sides. first marks the best one.
func (l *view) grids(array int, dims, limits []int) iter.Seq2[*grid, bool] {
	h := l.holders(array)
	return func(yield func(g *grid, first bool) bool) {
		for i, limit := range limits {
			if !yield(l.gridOf(h, dims, limit, false), i == 0) {
				return
			}
			if i > 0 || dims != nil {
				continue
			}
			if g := l.gridOf(h, dims, limit, true); !g.folded && g.down.dim >= 0 && !yield(g, false) {
				return
			}
		}
	}
}

// smallest returns the grid with one tile across.
func (l *view) smallest(array int, dims []int) *grid {
	return l.gridOf(l.holders(array), dims, 1, false)
}

// limits counts down from n to 2.
func limits(n int) []int {
	var list []int
	for ; n > 1; n-- {
		list = append(list, n)
	}
	return list
}
