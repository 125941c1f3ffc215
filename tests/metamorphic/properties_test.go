package metamorphic

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// bytes compares every block that the process holds with the formula.
func (p *player) bytes(u run, process int, b *batch.Batch, s step) {
	held := map[[2]int]bool{} // (array, device)
	for i, block := range u.lay.Process(process).Blocks {
		a := u.lay.Arrays()[block.Array]
		want := synthetic.Expect(a, block.Index, synthetic.Batch{Records: s.records, Seed: p.w.seed, Epoch: s.cursor.Epoch})
		if !bytes.Equal(b.Memory().Dst(i), want) {
			p.t.Fatalf("process %d, %+v: block %d of %s%v is wrong", process, s.cursor, i, a.Name, block.Index)
		}
		for _, device := range block.Holders {
			if !block.Index.Equal(a.Sharding.IndexAt(a.Shape, device)) || held[[2]int{block.Array, device}] {
				p.t.Fatalf("process %d: device %d of %s gets %v", process, device, a.Name, block.Index)
			}
			held[[2]int{block.Array, device}] = true
		}
	}
	if n := len(u.lay.Mesh().Local(process)) * len(u.lay.Arrays()); len(held) != n {
		p.t.Fatalf("process %d: %d shards, want %d", process, len(held), n)
	}
}

// asked checks that the process read exactly its rows, each once per step.
func (p *player) asked(u run, process int, src *synthetic.Source, want []step) {
	counts := map[int64]int{}
	for _, s := range want {
		for _, r := range rowsOf(u, process) {
			counts[s.records[r]]++
		}
	}
	got := src.Counts().Rows
	for r, n := range counts {
		if r >= 0 && got[r] != n {
			p.t.Fatalf("process %d: record %d was read %d times, want %d", process, r, got[r], n)
		}
		delete(got, r)
	}
	for r := range got {
		p.t.Fatalf("process %d: record %d was read, which it does not need", process, r)
	}
}

// rowsOf lists the rows of the batch with data that a process holds, directly from its
// devices. Rows of a mask or an extra alone are not read.
func rowsOf(u run, process int) (list []int) {
	needed := map[int]bool{}
	for _, a := range u.lay.Arrays() {
		for _, device := range u.lay.Mesh().Local(process) {
			if a.Kind == layout.Data && slices.Min(append(a.RowShape(), 1)) > 0 {
				addRows(needed, a.Shape[:a.BatchDims], a.Sharding.IndexAt(a.Shape, device), 0)
			}
		}
	}
	for row := range needed {
		list = append(list, row)
	}
	slices.Sort(list)
	return list
}

func addRows(needed map[int]bool, shape []int, part sharding.Index, row int) {
	if len(shape) == 0 {
		needed[row] = true
		return
	}
	for i := part[0][0]; i < part[0][1]; i++ {
		addRows(needed, shape[1:], part[1:], row*shape[0]+i)
	}
}

// once checks that the processes together read every row of the batch, and
// every position of an epoch once.
func (p *player) once(u run, want []step) {
	covered := map[int]bool{}
	for _, process := range processes(u) {
		for _, r := range rowsOf(u, process) {
			covered[r] = true
		}
	}
	if len(covered) != int(u.lay.BatchSize()) {
		p.t.Fatalf("no process reads %d of %d rows", int(u.lay.BatchSize())-len(covered), u.lay.BatchSize())
	}
	seen := map[[2]int64]bool{} // (epoch, record)
	for _, s := range want {
		for _, r := range s.records {
			key := [2]int64{s.cursor.Epoch, r}
			if r >= 0 && seen[key] {
				p.t.Fatalf("record %d is delivered twice in epoch %d", r, s.cursor.Epoch)
			}
			seen[key] = true
		}
	}
}

// reported checks the report: the processes that read the same rows, and the
// bytes.
func (p *player) reported(u run) {
	var report struct {
		Processes []struct {
			Process      int      `json:"process"`
			Rows         [][2]int `json:"rows"`
			BytesPerStep int      `json:"bytes_per_step"`
			SameRowsAs   []int    `json:"same_rows_as"`
		} `json:"processes"`
	}
	if err := json.Unmarshal(document.Report(u.lay, document.ReportOptions{Tables: true}), &report); err != nil {
		p.t.Fatal(err)
	}
	if len(report.Processes) != len(u.lay.Mesh().Processes()) {
		p.t.Fatalf("%d processes are reported", len(report.Processes))
	}
	for _, a := range report.Processes {
		bytes := 0
		l := p.open(u, a.Process, p.w.source(), loader.Options{})
		for _, b := range l.Blocks() {
			bytes += b.Bytes
		}
		if err := l.Close(); err != nil || bytes != a.BytesPerStep {
			p.t.Fatalf("process %d: %d bytes per step are reported, but the blocks have %d (%v)", a.Process, a.BytesPerStep, bytes, err)
		}
		for _, b := range report.Processes {
			same := slices.Equal(rowsOf(u, a.Process), rowsOf(u, b.Process))
			if a.Process != b.Process && same != slices.Contains(a.SameRowsAs, b.Process) {
				p.t.Fatalf("processes %d and %d: same rows %v, reported %v", a.Process, b.Process, same, a.SameRowsAs)
			}
		}
	}
}
