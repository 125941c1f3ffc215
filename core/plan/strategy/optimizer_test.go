package strategy_test

import (
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// TestOptimizerStates checks the bytes per parameter of a model with a number of
// parameters. AdamW takes 8 bytes, and 2 with moments of 8 bits [Dettmers et al., arXiv
// 2110.02861, section 2]. Lion has one moment [Chen et al., arXiv 2302.06675], and so has
// Muon for matrices.
func TestOptimizerStates(t *testing.T) {
	const parameters = 1_000_000_000
	for _, c := range []struct {
		optimizer, moments string
		want               int64
		assumption         string
	}{
		{"adamw", "", 8, ""},
		{"adamw", "bfloat16", 4, ""},
		{"adamw", "int8", 2, "2,048 elements of a moment"},
		{"adamw", "uint4", 1, "2,048 elements of a moment"},
		{"lion", "", 4, ""},
		{"lion", "int8", 1, "2,048 elements of a moment"},
		{"momentum", "", 4, ""},
		{"sgd", "", 0, ""},
		{"muon", "", 4, "for which muon keeps one moment"},
		{"adafactor", "", 4, "Its second moment counts whole"},
	} {
		r := advise(t, &strategy.Document{
			Model:    strategy.Model{Parameters: parameters},
			Training: strategy.Training{Batch: 1, Optimizer: c.optimizer, Precision: strategy.Precision{Master: strategy.NoMaster, Moments: c.moments}},
			Cluster:  strategy.Cluster{Devices: 1, MemoryBytes: 80e9},
		})
		if got := r.Candidates[0].Memory.Optimizer; got/parameters != c.want {
			t.Errorf("%s with moments %q: %d bytes, want %d per parameter", c.optimizer, c.moments, got, c.want)
		}
		found := false
		for _, a := range r.Assumptions {
			found = found || strings.Contains(a.Text, c.assumption)
		}
		if !found {
			t.Errorf("%s with moments %q: no assumption says %q", c.optimizer, c.moments, c.assumption)
		}
	}
}
