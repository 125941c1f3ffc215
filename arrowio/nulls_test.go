package arrowio_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/mixture"
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

// TestNullOfJoinedFiles names the file and the row of a null through views that join files: a concatenation, and a
// mixture with several epochs of its datasets.
func TestNullOfJoinedFiles(t *testing.T) {
	field := arrow.Field{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}
	whole1, broken := saveJSON(t, field, `[[1,2],[3,4],[5,6]]`), saveJSON(t, field, `[[1,2],[3,4],null]`)
	open := func(paths ...string) source.Source {
		ds := must(arrowio.OpenFiles(t.Context(), paths, arrowio.Options{}))
		t.Cleanup(func() { ds.Close() })
		return ds
	}
	mix := func(seed int64, sources ...source.Source) source.Source {
		return must(view.Mix(sources, view.Mixing{Schedule: []mixture.Stage{{Weights: []float64{1, 1}}}, Shuffle: true, Seed: seed, Records: 40}))
	}
	for what, below := range map[string]source.Source{
		"two files":       open(whole1, broken),
		"a concatenation": must(view.Concat(open(whole1), must(view.Slice(open(broken), 1, 3)), open(whole1))),
		"a mixture":       mix(3, open(whole1), open(broken)),
		"both":            must(view.Slice(mix(4, must(view.Concat(open(whole1), open(whole1))), must(view.Concat(open(whole1), open(broken)))), 5, 35)),
	} {
		shaped := must(view.Reshape(below, "x", view.Shape{Dims: []int{2}}))
		part := whole(0, shaped.Schema().Fields[0])
		part.Fill = nil
		g := must(shaped.Gatherer([]source.Part{part}))
		records := make([]int64, shaped.Len())
		for i := range records {
			records[i] = int64(i)
		}
		err := g.Gather(t.Context(), source.Draw{Epoch: 2}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: make([]byte, 8*len(records))}})
		e, ok := errors.AsType[*status.Error](err)
		if !ok || e.Attr("path") != broken || !strings.HasPrefix(e.Msg, broken+": row 2: ") {
			t.Errorf("%s: %v, want an error of row 2 of %s", what, err, broken)
		}
		_ = g.Close()
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
