package source_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
)

// TestCut checks that a tree is cut level by level, and siblings together.
func TestCut(t *testing.T) {
	leaves := func(n int) []source.Component { return make([]source.Component, n) }
	tree := source.Component{Below: []source.Component{{Below: leaves(3)}, {Below: leaves(2)}, {Below: leaves(1)}}}
	for _, c := range []struct{ most, top, first, second, third int }{
		{10, 3, 3, 2, 1}, {9, 3, 3, 2, 0}, {8, 3, 3, 0, 1}, {7, 3, 3, 0, 0}, {6, 3, 0, 2, 0}, {4, 3, 0, 0, 0}, {3, 0, 0, 0, 0},
	} {
		cut := tree
		cut.Below = append([]source.Component{}, tree.Below...)
		cut.Cut(c.most)
		if len(cut.Below) != c.top {
			t.Errorf("%+v: %d components below the root", c, len(cut.Below))
		}
		for i, below := range cut.Below {
			if want := []int{c.first, c.second, c.third}[i]; len(below.Below) != want {
				t.Errorf("%+v: %d components below component %d", c, len(below.Below), i)
			}
		}
	}
}
