package table

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// TestCheckRecords tries numbers at every bound, alone and first and last in a
// list.
func TestCheckRecords(t *testing.T) {
	for _, n := range []int64{0, 1, 100, 1 << 40} {
		x := &Table{Index: index.New([]int64{n})}
		for _, r := range []int64{math.MinInt64, -n - 1, -2, -1, 0, n - 1, n, n + 1, 1 << 62, math.MaxInt64} {
			legal := r >= -1 && r < n
			for _, list := range [][]int64{{r}, {r, -1, -1}, {-1, -1, r}} {
				zeros, err := x.checkRecords(list)
				if legal != (err == nil) || !legal && status.CodeOf(err) != status.OutOfRange {
					t.Errorf("record %d of %d: %v", r, n, err)
				}
				if legal && zeros != (r < 0 || len(list) > 1) {
					t.Errorf("%v of %d: zeros is %v", list, n, zeros)
				}
			}
		}
	}
	if zeros, err := (&Table{Index: index.New([]int64{3})}).checkRecords(nil); zeros || err != nil {
		t.Errorf("no records: %v, %v", zeros, err)
	}
	_, err := (&Table{Index: index.New([]int64{3})}).checkRecords([]int64{2, 3})
	if want := "arrowio: record 3 of 3"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestElements gathers small elements of two record batches by two jobs with
// overlapping rows.
func TestElements(t *testing.T) {
	batches := [][]int32{{10, 11, 12}, {13, 14, 15, 16}}
	var plane buffers.Plane
	for _, b := range batches {
		plane.Data = append(plane.Data, int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
	}
	field := describe(t, arrowmeta.Field{Name: "x", Type: number})
	x := &Table{Index: index.New([]int64{3, 4}), Columns: []*buffers.Column{{Planes: []buffers.Plane{plane}}}, Calls: source.NewCalls("arrowio", "dataset", nil)}
	x.Add(field, buffers.Nulls{})
	g, err := x.Gatherer([]source.Part{x.Schema.Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	first, second := make([]byte, 8), make([]byte, 12)
	jobs := []source.Job{{Rows: [2]int{0, 2}, Dst: first}, {Rows: [2]int{1, 4}, Dst: second}}
	if err := g.Gather(t.Context(), source.Draw{}, []int64{6, 0, 3, 2}, jobs); err != nil {
		t.Fatal(err)
	}
	if want := []byte{16, 0, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0, 13, 0, 0, 0, 12, 0, 0, 0}; !slices.Equal(slices.Concat(first, second), want) {
		t.Errorf("got %v and %v", first, second)
	}
	runtime.KeepAlive(batches)
}
