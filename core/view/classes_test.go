package view_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestClassNames: views keep the names of classes. A join of fields keeps names that all have,
// and refuses fields with different classes.
func TestClassNames(t *testing.T) {
	labeled := func(names ...string) source.Source {
		f := source.Field{Name: "label", Type: dtype.Int8, Names: names}
		g := f
		g.Name = "other"
		return synthetic.New(9, f, g)
	}
	ab, none := labeled("a", "b"), labeled()
	lists := synthetic.New(9, source.Field{Name: "label", Type: dtype.Int8, Ragged: 1, Names: []string{"a", "b"}})
	for want, views := range map[string][]source.Source{
		"[a b]": {
			must(view.Select(ab, "label")), must(view.Rename(ab, map[string]string{"label": "x"})), must(view.Take(ab, []int64{1})),
			must(view.Window(t.Context(), ab, view.Windows{Length: 2, Stride: 1})), must(view.Stack(ab, view.Stacked{Name: "x", Columns: []string{"other", "label"}})),
			must(view.Concat(ab, labeled("a", "b"))), must(view.Pad(lists, "label", view.Padding{Length: 3})),
		},
		"[]": {must(view.Concat(ab, none)), must(view.Concat(none, ab)), must(view.Concat(must(view.Concat(ab, none)), labeled("c")))},
	} {
		for i, v := range views {
			if got := fmt.Sprint(v.Schema().Fields[0].Names); got != want {
				t.Errorf("view %d has the names %s, want %s", i, got, want)
			}
		}
	}
	_, err := view.Concat(ab, labeled("b", "a"))
	want := `view: datasets 0 and 1 differ: field "label" stands for other classes: class 0 is "a" and "b"; make their fields equal, for example by select and rename`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	two := synthetic.New(9, source.Field{Name: "a", Names: []string{"x"}, Type: dtype.Int8}, source.Field{Name: "b", Type: dtype.Int8})
	if got := must(view.Stack(two, view.Stacked{Name: "x", Columns: []string{"a", "b"}})).Schema().Fields[0].Names; got != nil {
		t.Errorf("a stack of fields with different names has the names %v", got)
	}
}
