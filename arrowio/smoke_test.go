package arrowio

import (
	"context"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

func TestOpenGather(t *testing.T) {
	d, err := Open("../core/arrowmeta/testdata/fixed.arrow")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(d.Schema(), d.Len())
	for i, f := range d.Schema().Fields {
		box := [][2]int{}
		for _, n := range f.Shape {
			box = append(box, [2]int{0, n})
		}
		g, err := d.Gatherer([]source.Part{{Field: i, To: dtype.Invalid, Boxes: [][][2]int{box}}})
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, 3*f.RowBytes())
		if err := g.Gather(context.Background(), []int64{1, -1, 0}, []source.Job{{Rows: [2]int{0, 3}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		t.Log(f, dst)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
