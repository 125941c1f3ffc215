package arrowio_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// TestFill replaces null rows, null lists and null elements. Their bytes in the
// file are undefined.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		typ  arrow.DataType
		json string
		want []int32
	}{
		{arrow.PrimitiveTypes.Int32, `[1,null,3]`, []int32{1, -7, 3}},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), `[[1,2],null,[null,4]]`, []int32{1, 2, -7, -7, -7, 4}},
		{arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1,2],[3,null],null]`, []int32{1, 2, 3, -7, -7, -7}},
		{arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32)), `[[[1],[2]],[null,[4]],null,[[null],[8]]]`, []int32{1, 2, -7, 4, -7, -7, -7, 8}},
		{arrow.FixedSizeListOf(9, arrow.PrimitiveTypes.Int32), `[[1,2,3,4,null,6,7,8,9]]`, []int32{1, 2, 3, 4, -7, 6, 7, 8, 9}},
	} {
		ds, err := arrowio.Open(saveJSON(t, arrow.Field{Name: "x", Type: c.typ, Nullable: true}, c.json))
		if err != nil {
			t.Fatal(err)
		}
		p := whole(0, ds.Schema().Fields[0])
		p.Fill = int64(-7)
		g, err := ds.Gatherer([]source.Part{p})
		if err != nil {
			t.Fatal(err)
		}
		records := make([]int64, ds.Len())
		for i := range records {
			records[i] = int64(i)
		}
		dst := make([]byte, 4*len(c.want))
		if err := g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got := int32(binary.LittleEndian.Uint32(dst[4*i:])); got != want {
				t.Errorf("%v: element %d is %d instead of %d", c.json, i, got, want)
			}
		}
		ds.Close()
	}
}

// TestNullOfATakenRecord reads a null through a view that has another number for the record, and
// more records than the file. The error has the number of the view, and names the file of the record.
func TestNullOfATakenRecord(t *testing.T) {
	field := arrow.Field{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}
	path := saveJSON(t, field, `[[1,2],null,[3,4]]`)
	ds := must(arrowio.Open(path))
	defer ds.Close()
	taken := must(view.Take(ds, []int64{0, 2, 0, 2, 0, 1}))
	shaped := must(view.Reshape(taken, "x", view.Shape{Dims: []int{2, 1}}))
	part := whole(0, shaped.Schema().Fields[0])
	part.Fill = nil
	g := must(shaped.Gatherer([]source.Part{part}))
	err := g.Gather(t.Context(), source.Draw{}, []int64{5}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, 8)}})
	e, ok := errors.AsType[*status.Error](err)
	if !ok || e.Attr("record") != int64(5) || e.Attr("path") != path {
		t.Errorf("%v, want an error of record 5 of %s", err, path)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
