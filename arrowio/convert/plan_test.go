package convert

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// TestPlan divides records of 100 bytes.
func TestPlan(t *testing.T) {
	p := newPlan(nil, []source.Field{{Type: dtype.Uint8, Shape: []int{99}}}, 10, 50)
	p.sizes = sizes{file: 1000, window: 400, most: 2000, batch: 250}
	if p.rowBytes != 100 || p.batchRows() != 2 {
		t.Errorf("rows of %d bytes, batches of %d rows", p.rowBytes, p.batchRows())
	}
	for _, c := range []struct {
		units          []int64
		rowsPerFile    int64
		files, windows []int64
	}{
		{nil, 0, []int64{0}, nil},
		{nil, 5, []int64{0}, nil},
		{[]int64{0, 3}, 0, []int64{3}, []int64{3}},
		{[]int64{3, 3, 3, 0, 3}, 0, []int64{9, 3}, []int64{3, 3, 3, 3}},
		{[]int64{2, 2, 2, 4, 1}, 0, []int64{10, 1}, []int64{4, 2, 4, 1}},
		{[]int64{1, 15, 1, 1}, 0, []int64{1, 15, 2}, []int64{1, 15, 2}},
		{[]int64{45, 1}, 0, []int64{20, 20, 6}, []int64{20, 20, 5, 1}},
		{[]int64{3, 3, 3}, 4, []int64{4, 4, 1}, []int64{3, 3, 3}},
	} {
		p.units = c.units
		records := int64(0)
		for _, n := range c.units {
			records += n
		}
		if got := p.files(records, c.rowsPerFile); !slices.Equal(got, c.files) {
			t.Errorf("%v: files of %v, want %v", c.units, got, c.files)
		}
		if got := p.windows(0, records); !slices.Equal(got, c.windows) {
			t.Errorf("%v: windows of %v, want %v", c.units, got, c.windows)
		}
	}
	p.units = []int64{3, 3, 3}
	if got := p.windows(2, 8); !slices.Equal(got, []int64{4, 2}) { // parts of units: 1, 3 and 2
		t.Errorf("windows of %v", got)
	}
	if p := newPlan(nil, nil, 10, 5000); p.rowBytes != 500 {
		t.Errorf("rows of %d bytes by the files", p.rowBytes)
	}
}
