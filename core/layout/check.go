package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// check reports the problems of the layout as a whole. Method add has reported the
// problems of single specs.
func (l *Layout) check() {
	l.checkNames()
	for _, a := range l.arrays {
		if a.Kind != Data {
			continue
		}
		l.checkColumns(a)
		if d := l.doc.Dataset; d != nil && d.Fields != nil {
			l.checkField(a, d.Fields)
		}
	}
	l.checkDataset()
	l.checkCosts()
	l.checkLoading()
	l.checkReplicated()
	l.checkMicroBatches()
	l.checkProcesses()
	l.checkAxes()
	if l.doc.Batch != nil && l.Prefetch() == 0 {
		l.report(problem.Warning, NoPrefetch, "/prefetch", "prefetch is 0, so that reading a batch does not overlap the step before",
			"use 1 or more unless memory forbids")
	}
	l.sortProblems()
}

// sortProblems sorts by severity, errors first. The order within a severity stays.
func (l *Layout) sortProblems() {
	found := l.problems
	l.problems = make([]problem.Problem, 0, len(found))
	for _, severity := range []problem.Severity{problem.Error, problem.Warning, problem.Info} {
		for _, p := range found {
			if p.Severity == severity {
				l.problems = append(l.problems, p)
			}
		}
	}
}

// checkNames reports a layout without arrays, and arrays with the name of the mask
// or of an extra. In l.arrays, the mask and the extras follow the other arrays.
func (l *Layout) checkNames() {
	if len(l.arrays) == 0 {
		l.report(problem.Error, NoArrays, "/arrays", "there is no array to deliver", "name at least one array")
	}
	generated := map[string]string{}
	for _, a := range l.arrays[len(l.doc.Arrays):] {
		what := "an extra"
		if a.Kind == Mask {
			what = "the mask"
		}
		if other, ok := generated[a.Name]; ok {
			l.report(problem.Error, NameTaken, "/batch/mask", fmt.Sprintf("%s and %s are both named %s", other, what, wording.Quote(a.Name)), "name the mask otherwise")
		}
		generated[a.Name] = what
	}
	for _, a := range l.arrays[:len(l.doc.Arrays)] {
		top, _, nested := strings.Cut(a.Name, "/")
		what, ok := generated[top]
		switch {
		case !ok:
		case nested:
			l.report(problem.Error, NameTaken, arrayPath(a.Name), fmt.Sprintf("array %s stands below %s, the name of %s", wording.Quote(a.Name), wording.Quote(top), what), nameHint(what))
		default:
			l.report(problem.Error, NameTaken, arrayPath(a.Name), fmt.Sprintf("array %s has the name of %s", wording.Quote(a.Name), what), nameHint(what))
		}
	}
}

func nameHint(what string) string {
	if what == "the mask" {
		return "rename the array, or choose another mask name"
	}
	return "rename the array, or leave the extra out"
}

// checkCosts reports numbers beyond the limits of meshfeed or beyond the budget.
func (l *Layout) checkCosts() {
	t := l.costs.totals
	if l.costs.walks > maxWalks {
		l.report(problem.Error, TooLarge, "/arrays", fmt.Sprintf("the arrays are partitioned in so many ways over %d devices that their cost is not worked out", l.mesh.Size()), "use fewer arrays, or partition them alike")
	}
	if max(t.BatchBytes, t.ReadBytes, t.DeviceBytes, t.HostBytes, t.InterconnectBytes) > MaxInteger {
		l.report(problem.Error, TooLarge, "/arrays", "a batch takes more than 2^53 bytes", "make the batch or the arrays smaller")
		return // the sums are not exact above 2^53
	}
	if n := l.costs.blocks; n > MaxBlocks {
		l.report(problem.Error, TooManyBlocks, "/mesh", fmt.Sprintf("a process gathers %d blocks for every batch, but may gather %d", n, MaxBlocks),
			"use more processes, or fewer arrays", fact("blocks", n), fact("limit", MaxBlocks))
	}
	if b := l.doc.Budget.DeviceBytes; b > 0 && t.DeviceBytes > b {
		l.report(problem.Error, DeviceBudget, "/budget/device_bytes",
			fmt.Sprintf("a device holds %d bytes of one batch, but its budget is %d", t.DeviceBytes, b),
			"use a smaller batch, or partition over more axes", fact("bytes", t.DeviceBytes), fact("budget", b))
	}
	if b := l.doc.Budget.HostBytes; b > 0 && t.HostBytes > b {
		l.report(problem.Error, HostBudget, "/budget/host_bytes",
			fmt.Sprintf("process %d needs %d bytes for %d batches, but its budget is %d", l.fullest(), t.HostBytes, l.Prefetch()+1, b),
			"lower prefetch, or use a smaller batch", fact("bytes", t.HostBytes), fact("budget", b), fact("process", int64(l.fullest())))
	}
}

// fullest returns the process that needs the most host memory. If several need as
// much, it returns the lowest.
func (l *Layout) fullest() int {
	most := 0
	for n, bytes := range l.costs.host {
		if bytes > l.costs.host[most] {
			most = n
		}
	}
	return l.processes[most]
}

// checkReplicated reports batch arrays that every device gets as a whole. It also
// reports shards that are smaller than a slot, the unit of memory of a block.
func (l *Layout) checkReplicated() {
	for _, a := range l.arrays {
		if a.Kind != Data || a.Sharding == nil || l.mesh.Size() == 1 || !a.Sharding.IsFullyReplicated() {
			continue
		}
		l.report(problem.Warning, Replicated, arrayPath(a.Name)+"/spec",
			fmt.Sprintf("array %s is not partitioned: each of the %d devices gets the whole batch", wording.Quote(a.Name), l.mesh.Size()),
			"name a mesh axis for the batch dimension, unless every device shall see every row",
			fact("devices", int64(l.mesh.Size())), fact("bytes", arrayBytes(a)))
	}
	for i, a := range l.arrays {
		if a.Kind != Data || a.Delivered == nil {
			continue
		}
		if bytes := l.partBytes(i); bytes > 0 && bytes < slot && l.delivered[i].Count() > 1 {
			l.report(problem.Info, TinyShards, arrayPath(a.Name)+"/spec",
				fmt.Sprintf("a shard of array %s has %d bytes and takes %d", wording.Quote(a.Name), bytes, slot),
				"use a larger batch, or partition over fewer axes", fact("bytes", bytes), fact("slot", slot))
		}
	}
}

// checkMicroBatches reports arrays with specs that split a dimension that counts
// micro-batches, not rows. A step processes one micro-batch after the other, so each should
// be spread over all devices. One problem, at the first array, covers all.
func (l *Layout) checkMicroBatches() {
	var first, dim, arrays int
	for i, a := range l.arrays {
		if a.Kind != Data || a.Sharding == nil {
			continue
		}
		tiles := l.tilings[i].Tiles()[:a.BatchDims-1] // the last batch dimension counts rows
		if d := slices.IndexFunc(tiles, func(n int) bool { return n > 1 }); d >= 0 {
			if arrays == 0 {
				first, dim = i, d
			}
			arrays++
		}
	}
	if arrays == 0 {
		return
	}
	a, tiles := l.arrays[first], l.tilings[first].Tiles()[dim]
	message := fmt.Sprintf("dimension %d of array %s counts micro-batches, but spec %s splits it %d ways: a device holds whole micro-batches, and not a part of each",
		dim, wording.Quote(a.Name), wording.Plain(a.Sharding.Spec().String()), tiles)
	if arrays > 1 {
		message += fmt.Sprintf("; the same holds for %d more", arrays-1)
	}
	l.report(problem.Warning, SplitMicro, jsontext.Element(arrayPath(a.Name)+"/spec", dim), message,
		fmt.Sprintf("name the axes in dimension %d, which counts the rows of a micro-batch, and leave this one whole", a.BatchDims-1),
		fact("dimension", int64(dim)), fact("size", int64(a.Shape[dim])), fact("tiles", int64(tiles)), fact("arrays", int64(arrays)))
}

// checkProcesses reports gaps in the process numbers, and processes that read
// different amounts or the same rows.
func (l *Layout) checkProcesses() {
	if p := l.processes; len(p) > 0 && p[len(p)-1] >= len(p) {
		idle := 0
		for idle < len(p) && p[idle] == idle {
			idle++
		}
		l.report(problem.Info, IdleProcess, "/mesh/devices", fmt.Sprintf("process %d owns no device of the mesh", idle),
			"it gets arrays without shards, which is legal", fact("process", int64(idle)), fact("processes", int64(len(p))))
	}
	if !l.costs.known || len(l.costs.processes) == 0 {
		return
	}
	least, most := slices.Min(l.costs.processes), slices.Max(l.costs.processes)
	if least < most {
		l.report(problem.Warning, Unbalanced, "/mesh", fmt.Sprintf("a process reads from %d to %d bytes per step", least, most),
			"order the devices so that every process holds as many distinct parts", fact("least", least), fact("most", most))
	}
	l.checkSameRows()
}

// checkSameRows reports processes that read the same rows, except with LoadGlobal,
// where every process reads the whole batch.
func (l *Layout) checkSameRows() {
	var processes, groups int64
	for g, size := range l.costs.rows.sizes {
		if size > 1 && len(l.costs.rows.ranges[g]) > 0 {
			processes += int64(size)
			groups++
		}
	}
	if groups == 0 || l.costs.totals.ReadBytes > MaxInteger || l.Loading() == LoadGlobal {
		return
	}
	read, batch := l.costs.totals.ReadBytes, l.costs.totals.BatchBytes
	message := fmt.Sprintf("%d processes read the same rows as another process", processes)
	if read > batch {
		message += fmt.Sprintf(", and together all read the batch %s", wording.Times(read, batch))
	}
	l.report(problem.Info, SameRows, "/mesh", message,
		"that is right where an axis that does not partition the batch crosses processes",
		fact("processes", processes), fact("groups", groups), fact("read_bytes", read), fact("batch_bytes", batch))
}

// checkAxes reports axes that replicate every array, unless no array is
// partitioned over any axis, or the document has no batch.
func (l *Layout) checkAxes() {
	if !l.costs.known || l.doc.Batch == nil {
		return
	}
	used := make([]bool, l.mesh.NumAxes())
	for _, t := range l.tilings {
		for n, weight := range t.Weights() {
			used[n] = used[n] || weight > 0
		}
	}
	for n, axis := range l.mesh.Axes() {
		if axis.Size > 1 && !used[n] && slices.Contains(used, true) {
			l.report(problem.Info, UnusedAxis, jsontext.Element("/mesh/axes", n), fmt.Sprintf("no array is partitioned over axis %s: its %d devices hold the same data", wording.Quote(axis.Name), axis.Size),
				"name it in a spec, unless that is meant", fact("size", int64(axis.Size)))
		}
	}
}
