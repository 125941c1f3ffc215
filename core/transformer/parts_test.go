package transformer_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/transformer"
)

// TestPresets compares the parameters of the presets with the published counts.
func TestPresets(t *testing.T) {
	published := map[string]int64{
		"gpt2":         124_439_808,
		"gpt2-xl":      1_557_611_200,
		"llama2-7b":    6_738_415_616,
		"llama2-70b":   68_976_648_192,
		"llama3-8b":    8_030_261_248,
		"llama3-70b":   70_553_706_496,
		"llama3-405b":  405_853_388_800,
		"mixtral-8x7b": 46_702_792_704,
	}
	for _, p := range transformer.Presets() {
		if err := p.Shape.Check(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if got, want := p.Shape.Parameters(), published[p.Name]; want != 0 && got != want {
			t.Errorf("%s has %d parameters, published are %d", p.Name, got, want)
		}
	}
}
