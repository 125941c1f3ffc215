package view_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// blobs returns a source of binary values of 12 bytes, with every third null, of lists of six
// numbers, and of a number.
func blobs(t testing.TB) source.Source {
	src := must(view.Slice(columns(), 0, 9))
	runs, images, lists := []int64{2, 1, 3, 3}, [][]byte{[]byte("abcdefghijkl"), nil, []byte("ABCDEFGHIJKL"), make([]byte, 12)}, [][]byte{}
	for i := range byte(4) {
		lists = append(lists, []byte{i, 1, 2, 3, 4, 5})
	}
	v, err := view.Constants(src, runs,
		view.Constant{Field: source.Field{Name: "image", Type: dtype.Uint8, Ragged: 1, Logical: "binary"}, Rows: images},
		view.Constant{Field: source.Field{Name: "list", Type: dtype.Int8, Ragged: 1}, Rows: lists})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func reshaped(t testing.TB, src source.Source, field string, typ dtype.Type, dims ...int) source.Source {
	t.Helper()
	v, err := view.Reshape(src, field, view.Shape{Dims: dims, Type: typ})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestReshape runs the suite over bytes as numbers, lists, and rows of another shape, and
// compares a box of the new shape.
func TestReshape(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) source.Source {
		v := reshaped(t, reshaped(t, blobs(t), "image", dtype.Float32, 3, 1), "list", dtype.Invalid, 2, 3)
		return reshaped(t, v, "list", dtype.Invalid, 3, 2)
	})
	v := reshaped(t, blobs(t), "image", dtype.Uint16, 3, 2)
	number, f, _ := v.Schema().Field("image")
	if f.Type != dtype.Uint16 || f.Logical != "" || !f.Nullable || f.Ragged != 0 {
		t.Errorf("%+v", f)
	}
	g, err := v.Gatherer([]source.Part{{Field: number, Boxes: [][][2]int{{{1, 3}, {1, 2}}}, Fill: 0}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 3*4)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{3, 2, -1}, []source.Job{{Rows: [2]int{0, 3}, Dst: dst}}); err != nil {
		t.Fatal(err)
	}
	if want := []byte("GHKL\x00\x00\x00\x00\x00\x00\x00\x00"); !bytes.Equal(dst, want) {
		t.Errorf("got %q, want %q", dst, want)
	}
	fingerprints := map[source.Fingerprint]bool{}
	for _, v := range []source.Source{blobs(t), v, reshaped(t, blobs(t), "image", dtype.Uint16, 2, 3), reshaped(t, blobs(t), "image", dtype.Int16, 3, 2)} {
		fingerprints[fingerprint(t, v)] = true
	}
	if len(fingerprints) != 4 {
		t.Errorf("%d fingerprints of 4 views", len(fingerprints))
	}
}

// TestReshapeErrors compares the messages for shapes that do not fit.
func TestReshapeErrors(t *testing.T) {
	src := must(view.Constants(blobs(t), []int64{9}, view.Constant{Field: source.Field{Name: "text", Type: dtype.Uint8, Ragged: 1, Logical: "string"}, Rows: [][]byte{[]byte("x")}}))
	for _, c := range []struct {
		field string
		shape view.Shape
		code  status.Code
		want  string
	}{
		{"none", view.Shape{}, status.NotFound, `source: the dataset has no field "none"`},
		{"text", view.Shape{Dims: []int{1}}, status.InvalidArgument, `view: field "text" holds text, whose rows have no shape; give its bytes one length: `},
		{"image", view.Shape{Dims: []int{3, 0}}, status.InvalidArgument, `view: field "image" cannot have rows of shape [3 0]; give positive lengths of at most 2 GiB in all`},
		{"image", view.Shape{Dims: []int{1 << 31}, Type: dtype.Int16}, status.InvalidArgument, `view: field "image" cannot have rows of shape [2147483648]; give`},
		{"image", view.Shape{Dims: make([]int, 33)}, status.InvalidArgument, `view: field "image" cannot have rows of shape [0`},
		{"image", view.Shape{Dims: []int{12}, Type: dtype.Bool}, status.InvalidArgument, `view: field "image" holds uint8, which cannot be read as bool; only bytes`},
		{"list", view.Shape{Dims: []int{3}, Type: dtype.Int16}, status.InvalidArgument, `view: field "list" holds int8, which cannot be read as int16; only bytes`},
		{"a", view.Shape{Dims: []int{5}}, status.InvalidArgument, `view: field "a" has rows of 12 bytes, but rows of shape [5] and type int32 have 20; give the shape that the rows have`},
	} {
		_, err := view.Reshape(src, c.field, c.shape)
		if err == nil || status.CodeOf(err) != c.code || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	v := reshaped(t, src, "image", dtype.Invalid, 2, 3)
	g, err := v.Gatherer([]source.Part{v.Schema().Whole(4)})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Gather(context.Background(), source.Draw{}, []int64{3}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, 6)}})
	const want = `source: field "image": record 3 has 12 bytes, but rows of shape [2 3] and type uint8 have 6; give the shape that the rows have, or leave out this record (Go: view.FilterFunc; Python: ds.filter)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
