package view_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestMissing: every function of the package returns an error for a nil source, for a
// nil pointer to a source, and for a nil function.
func TestMissing(t *testing.T) {
	const open = "; give a dataset; arrowio.Open, which opens one, returns nil with an error"
	here := synthetic.New(9, source.Field{Name: "a"})
	for _, src := range []source.Source{nil, (*arrowio.Dataset)(nil)} {
		calls := map[string]func() (source.Source, error){
			"Constants":  func() (source.Source, error) { return view.Constants(src, nil) },
			"Filter":     func() (source.Source, error) { return view.Filter(src, nil) },
			"FilterFunc": func() (source.Source, error) { return view.FilterFunc(src, func(int64) bool { return true }) },
			"Concat":     func() (source.Source, error) { return view.Concat(src) },
			"Pad":        func() (source.Source, error) { return view.Pad(src, "a", view.Padding{}) },
			"Pack":       func() (source.Source, error) { return view.Pack(t.Context(), src, "a", view.Packing{}) },
			"Rename":     func() (source.Source, error) { return view.Rename(src, nil) },
			"Reshape":    func() (source.Source, error) { return view.Reshape(src, "a", view.Shape{}) },
			"Select":     func() (source.Source, error) { return view.Select(src) },
			"Slice":      func() (source.Source, error) { return view.Slice(src, 0, 0) },
			"Split": func() (source.Source, error) {
				_, err := view.Split(t.Context(), src, view.Division{})
				return nil, err
			},
			"Stack":  func() (source.Source, error) { return view.Stack(src) },
			"Take":   func() (source.Source, error) { return view.Take(src, nil) },
			"Window": func() (source.Source, error) { return view.Window(t.Context(), src, view.Windows{}) },
		}
		for name, call := range calls {
			v, err := call()
			wantMissing(t, fmt.Sprintf("%s(%T)", name, src), v, err, "view: there is no source"+open)
		}
		v, err := view.Concat(here, src)
		wantMissing(t, "Concat of two", v, err, "view: source 1 of 2 is nil"+open)
		wantMissing(t, "Check", nil, source.Check(t.Context(), src, nil), "source: there is no source"+open)
		wantMissing(t, "Lengths", nil, source.Lengths(t.Context(), src, 0, 0, nil), "source: there is no source"+open)
	}
	v, err := view.FilterFunc(here, nil)
	wantMissing(t, "FilterFunc", v, err, "view: the function of the filter is nil; give a function that returns true for the numbers of the records to keep")
}

func wantMissing(t *testing.T, name string, v source.Source, err error, want string) {
	t.Helper()
	if v != nil || err == nil || err.Error() != want || status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("%s returns %v and %v,\nwant %s", name, v, err, want)
	}
}
