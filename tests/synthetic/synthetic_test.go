package synthetic

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
)

func fields() []source.Field {
	list := []source.Field{{Name: "drawn", Type: dtype.Int32, Ragged: 1, Nullable: true}, {Name: "image", Type: dtype.Float64, Shape: []int{4, 2, 3}}}
	for _, t := range dtype.All() {
		list = append(list, source.Field{Name: t.String(), Type: t})
	}
	return list
}

// A test's dataset must satisfy the conformance suite.
func TestSource(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) source.Source { return New(50, fields()...) })
}
