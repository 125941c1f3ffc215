package gomlxfeed_test

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

// TestDocumentsDoNotAttendToEachOther changes the first document of a row of two. The model of the
// example must compute the same for the second one.
func TestDocumentsDoNotAttendToEachOther(t *testing.T) {
	devices := must(gomlxfeed.Open(t.Context(), "go"))
	defer devices.Close()
	exec := must(model.NewExec(devices.Backend(), model.NewStore(), func(s *model.Scope, tokens, segments, positions *graph.Node) *graph.Node {
		return nextToken(s, []*graph.Node{tokens, segments, positions})
	}))
	defer exec.Finalize()
	logits := func(first uint8) []float32 {
		out := must(exec.Call([][]uint8{{first, 20, 30, 40}}, [][]int32{{1, 1, 2, 2}}, [][]int32{{0, 1, 0, 1}}))
		return tensors.MustCopyFlatData[float32](out[0])
	}
	before, after := logits(7), logits(9)
	document := 2 * vocabulary
	if slices.Equal(before[vocabulary:document], after[vocabulary:document]) {
		t.Error("the second token does not attend to the first one of its document")
	}
	if !slices.Equal(before[document:], after[document:]) {
		t.Error("the second document attends to the first one")
	}
}
