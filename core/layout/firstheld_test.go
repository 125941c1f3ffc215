package layout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/documents"
	"github.com/meshfeed/meshfeed/tests/random"
)

// lowestHolders returns the lowest process that holds each distinct block with
// bytes, computed from the index of every device.
func lowestHolders(l *layout.Layout) map[string]int {
	lowest := map[string]int{}
	for i, a := range l.Arrays() {
		if a.Kind == layout.Static || slices.Contains(a.RowShape(), 0) {
			continue
		}
		for position := range l.Mesh().Size() {
			key, process := fmt.Sprint(i, a.Delivered.IndexAt(a.Shape, position)), l.Mesh().Device(position).Process
			if n, ok := lowest[key]; !ok || process < n {
				lowest[key] = process
			}
		}
	}
	return lowest
}

func eachRow(batch []int, part sharding.Index, row int, do func(int)) {
	if len(batch) == 0 {
		do(row)
		return
	}
	for i := part[0][0]; i < part[0][1]; i++ {
		eachRow(batch[1:], part[1:], row*batch[0]+i, do)
	}
}

// Every distinct block is first held by its lowest holder. Over all processes, every
// row occurs once in each of its parts.
func TestFirstHeldOfRandomLayouts(t *testing.T) {
	r := random.New(t)
	checked := 0
	for n := range 400 {
		l, err := layout.Draft(documents.Random(r))
		if err != nil || l.Err() != nil || l.BatchSize() > 1<<12 || l.Parts() > 1<<8 {
			continue
		}
		checked++
		want, parts := lowestHolders(l), make([]int, l.BatchSize()*l.Parts())
		for _, p := range append(l.Mesh().Processes(), 1<<20) {
			for _, h := range l.FirstHeld(p) {
				b := l.Process(p).Blocks[h.Block]
				key := fmt.Sprint(b.Array, b.Index)
				if first, ok := want[key]; !ok || first != p {
					t.Fatalf("layout %d, %s: block %s is first held by process %d, want %d (%v)", n, document.Canonical(l.Document()), key, p, first, ok)
				}
				delete(want, key)
				a := l.Arrays()[b.Array]
				eachRow(a.Shape[:a.BatchDims], b.Index, 0, func(row int) { parts[int64(row)*l.Parts()+h.Part]++ })
			}
		}
		if len(want) > 0 {
			t.Fatalf("layout %d, %s: no process counts %v", n, document.Canonical(l.Document()), want)
		}
		if i := slices.IndexFunc(parts, func(n int) bool { return n != 1 }); i >= 0 {
			t.Fatalf("layout %d, %s: part %d of row %d comes %d times", n, document.Canonical(l.Document()), int64(i)%l.Parts(), int64(i)/l.Parts(), parts[i])
		}
	}
	if checked < 50 {
		t.Errorf("only %d layouts were checked", checked)
	}
}

func BenchmarkFirstHeld(b *testing.B) {
	d := rowsDocument(512, sharding.P("data"), sharding.P("data", "model"))
	d.Mesh.Axes = []mesh.Axis{{Name: "data", Size: 1024}, {Name: "model", Size: 4}}
	d.Batch.Size = []int{4096}
	l, err := layout.Draft(d)
	if err != nil || l.Err() != nil {
		b.Fatal(err, l.Err())
	}
	for b.Loop() {
		l.FirstHeld(511)
	}
}
