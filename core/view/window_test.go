package view_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestWindowRuns: windows begin with every run of one value, and end within it.
func TestWindowRuns(t *testing.T) {
	src := newNullable(20) // runs of 6, 6, 6 and 2
	v := must(view.Window(t.Context(), src, view.Windows{Length: 3, Stride: 2, Within: "group"}))
	g, err := v.Gatherer([]source.Part{{Field: 1, Boxes: [][][2]int{{{2, 3}, {0, 1}}, {{0, 1}, {0, 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 8*6)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{0, 1, 2, 3, 4, 5}, []source.Job{{Rows: [2]int{0, 6}, Dst: dst}}); err != nil {
		t.Fatal(err)
	}
	var got []int
	for i := 0; i < len(dst); i += 4 {
		got = append(got, (int(dst[i])-1)/10)
	}
	if want := []int{2, 0, 4, 2, 8, 6, 10, 8, 14, 12, 16, 14}; v.Len() != 6 || !slices.Equal(got, want) {
		t.Errorf("%d windows, which end and begin with records %v, want %v", v.Len(), got, want)
	}
}

// TestWindowWithinText: the runs of text are found across the reads of many records.
func TestWindowWithinText(t *testing.T) {
	src := synthetic.New(9001, source.Field{Name: "x", Type: dtype.Int32})
	names := source.Field{Name: "name", Type: dtype.Uint8, Ragged: 1, Logical: "string"}
	rows := [][]byte{{}, []byte("a"), []byte("a"), {}, []byte("ab"), []byte("b")}
	v := must(view.Constants(src, []int64{1, 4095, 4000, 2, 900, 3}, view.Constant{Field: names, Rows: rows}))
	for length, want := range map[int64]int64{1: 9001, 2: 8996, 3: 8093 + 898 + 1, 900: 8095 - 899 + 1, 8095: 1} {
		w, err := view.Window(t.Context(), v, view.Windows{Length: length, Stride: 1, Within: "name"})
		if err != nil || w.Len() != want {
			t.Errorf("windows of %d: %d, %v, want %d", length, w.Len(), err, want)
		}
	}
	_, err := view.Window(t.Context(), v, view.Windows{Length: 8096, Stride: 1, Within: "name"})
	if want := `view: a window takes 8096 records, but the longest run of one value of "name" has 8095; make the window shorter`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWindowWithinLists: lists are one value if their lengths and the lengths of their inner
// lists are equal, and a null among them is an error.
func TestWindowWithinLists(t *testing.T) {
	src := synthetic.New(5, source.Field{Name: "x", Type: dtype.Int32})
	for ragged, c := range map[int]struct {
		rows [][]byte
		want int64
	}{
		1: {[][]byte{{1, 2}, {1, 2}, {1}, {}, {}}, 2},
		2: {[][]byte{{2, 0, 1, 2}, {2, 0, 1, 2}, {1, 1, 1, 2}, {1, 1, 1, 2}, {0, 2, 1, 2}}, 2},
	} {
		w, err := view.Window(t.Context(), fewLists{src, ragged, c.rows}, view.Windows{Length: 2, Stride: 1, Within: "x"})
		if err != nil || w.Len() != c.want {
			t.Errorf("%d levels: %v, %v, want %d windows", ragged, w, err, c.want)
		}
	}
	for _, rows := range [][][]byte{{{1, 1, 5}, {255, 1, 5}}, {{1, 1, 5}, nil}} {
		_, err := view.Window(t.Context(), fewLists{must(view.Slice(src, 0, 2)), 2, rows}, view.Windows{Length: 1, Stride: 1, Within: "x"})
		if want := `view: field "x": record 1 holds a null, so records cannot be grouped by its values; use a field without nulls, or leave out these records (Go: view.FilterFunc; Python: ds.filter)`; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// fewLists is a source of lists of int8, or of two lists after their lengths.
type fewLists struct {
	source.Source
	ragged int
	rows   [][]byte
}

func (s fewLists) Schema() source.Schema {
	return source.Schema{Fields: []source.Field{{Name: "x", Type: dtype.Int8, Ragged: s.ragged, Nullable: true}}}
}

func (s fewLists) Reader([]int) (source.Reader, error) { return fewListsReader{s: s}, nil }

type fewListsReader struct {
	source.FixedReader
	s fewLists
}

func (r fewListsReader) Read(_ context.Context, _ source.Draw, spans []source.Span, use func() error) error {
	for i := range spans {
		row := r.s.rows[spans[i].Record]
		if r.s.ragged == 2 && row != nil {
			spans[i].Lists = [][]int64{{int64(int8(row[0])), int64(row[1])}}
			row = row[2:]
		}
		spans[i].Row = row
	}
	return use()
}

func (fewListsReader) Ahead(source.Draw, []int64) {}
func (fewListsReader) Close() error               { return nil }

// TestWindowSkips: windows skip a ragged field, and list the reason.
func TestWindowSkips(t *testing.T) {
	src := synthetic.New(9, source.Field{Name: "tokens", Type: dtype.Int32, Ragged: 1}, source.Field{Name: "x", Type: dtype.Int8})
	schema := must(view.Window(t.Context(), src, view.Windows{Length: 2, Stride: 1})).Schema()
	want := "[{x int8 [2] false false 0 false  false false []}] [{tokens list<int32> windows join rows of one shape; pad it first}]"
	if got := fmt.Sprint(schema.Fields, schema.Skipped); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
