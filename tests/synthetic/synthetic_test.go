package synthetic

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
)

func fields() []source.Field {
	list := []source.Field{{Name: "image", Type: dtype.Float64, Shape: []int{4, 2, 3}}}
	for _, t := range dtype.All() {
		list = append(list, source.Field{Name: t.String(), Type: t})
	}
	return list
}

// A test's dataset must satisfy the conformance suite.
func TestSource(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) source.Source { return New(50, fields()...) })
}

// A slice of it must too.
func TestSlice(t *testing.T) {
	for _, r := range [][2]int64{{0, 50}, {10, 30}, {50, 50}} {
		sourcetest.Run(t, func(t *testing.T) source.Source {
			src := New(50, fields()...)
			t.Cleanup(func() { _ = src.Close() })
			part, err := source.Slice(src, r[0], r[1])
			if err != nil {
				t.Fatal(err)
			}
			return part
		})
	}
}
