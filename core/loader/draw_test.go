package loader_test

import (
	"maps"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestDraw: rows that depend on the draw follow the batch's epoch and the loader's seed, wherever a run
// continues, through views, and in every order. So do announcements.
func TestDraw(t *testing.T) {
	d := document(8)
	d.Batch.Remainder = layout.Pad
	d.Arrays[1].Field = "drawn"
	lay := newLayout(t, d)
	for _, o := range []loader.Options{
		{Prefetch: -1}, {Prefetch: 5, Workers: 3, Shuffle: true}, {Prefetch: 1, Order: sampler.Sequential},
	} {
		src := synthetic.New(29,
			source.Field{Name: "image", Type: dtype.Float32, Shape: []int{2, 4}}, source.Field{Name: "drawn", Type: dtype.Int64})
		o.Layout, o.Seed, o.Epochs = lay, 5, 3
		through, err := view.Concat(src) // it has the records of src
		if err != nil {
			t.Fatal(err)
		}
		l := newLoader(t, through, o)
		for range 12 {
			next(t, l)
		}
		want := map[source.Draw]int{{Seed: 5}: 16 - 4, {Seed: 5, Epoch: 1}: 16, {Seed: 5, Epoch: 2}: 16} // half of 32 rows, without the first step
		if got := src.Counts().Draws; !maps.Equal(got, want) {
			t.Errorf("%+v announced %v, want %v", o, got, want)
		}
		if err := l.Seek(batch.Cursor{Epoch: 1, Position: 11}); err != nil {
			t.Fatal(err)
		}
		next(t, l)
		saved := l.State()
		next(t, l)
		if err := l.Restore(saved.JSON(), false); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			next(t, l)
		}
	}
}
