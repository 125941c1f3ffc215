package memory_test

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/memory"
)

// With mixed precision, Adam takes 16 bytes per parameter, of which the optimizer has 12
// [ZeRO §3.1]. With fp32 alone it also takes 16, of which the optimizer has 8.
func TestBytesPerParameter(t *testing.T) {
	pure := memory.Precision{Compute: memory.Float32, Weights: memory.Float32, Gradients: memory.Float32, Moments: memory.Float32}
	for _, c := range []struct {
		precision memory.Precision
		optimizer memory.Optimizer
		want      memory.Bytes
	}{
		{memory.MixedPrecision(), memory.AdamW, memory.Bytes{Weights: 2, Gradients: 2, Optimizer: 12}},
		{memory.MixedPrecision(), memory.Lion, memory.Bytes{Weights: 2, Gradients: 2, Optimizer: 8}},
		{memory.MixedPrecision(), memory.SGD, memory.Bytes{Weights: 2, Gradients: 2, Optimizer: 4}},
		{memory.MixedPrecision(), memory.Muon, memory.Bytes{Weights: 2, Gradients: 2, Optimizer: 8}},
		{pure, memory.AdamW, memory.Bytes{Weights: 4, Gradients: 4, Optimizer: 8}},
		{pure, memory.Momentum, memory.Bytes{Weights: 4, Gradients: 4, Optimizer: 4}},
	} {
		n := int64(1000 * 64)
		got := c.precision.Of([]int{1000, 64}, c.optimizer)
		if want := (memory.Bytes{Weights: n * c.want.Weights, Gradients: n * c.want.Gradients, Optimizer: n * c.want.Optimizer}); got != want {
			t.Errorf("%v of %v: got %v, want %v", c.optimizer, c.precision, got, want)
		}
	}
}

// A planner asks for the sizes of every part of every candidate.
func TestSizesDoNotAllocate(t *testing.T) {
	shape := []int{512, 4096}
	for _, o := range memory.Optimizers() {
		if n := testing.AllocsPerRun(10, func() { memory.MixedPrecision().Of(shape, o) }); n != 0 {
			t.Errorf("%v: %v allocations", o, n)
		}
	}
}

// Elements is the size of States, for every optimizer and shape.
func TestElementsOfStates(t *testing.T) {
	for _, o := range memory.Optimizers() {
		for _, shape := range [][]int{{}, {7}, {128, 127}, {128, 300}, {300, 128}, {128, 128, 3}, {4, 256, 256}, {256, 4, 512}, {0, 256}} {
			want := int64(0)
			for _, s := range o.States(shape) {
				if len(s.Shape) != len(s.Dims) {
					t.Fatalf("%v of %v: state %v", o, shape, s)
				}
				n := int64(1)
				for _, size := range s.Shape {
					n *= int64(size)
				}
				want += n
			}
			if got := o.Elements(shape); got != want {
				t.Errorf("%v of %v: Elements is %d, but the states have %d", o, shape, got, want)
			}
		}
	}
}

// Optax factors the two largest dimensions, of equal ones the last two.
func TestAdafactorStates(t *testing.T) {
	for _, c := range []struct{ shape, row, column []int }{ // the dimensions of the parameter that each state has
		{[]int{256, 512}, []int{0}, []int{1}},
		{[]int{512, 256}, []int{1}, []int{0}},
		{[]int{256, 256}, []int{0}, []int{1}},
		{[]int{128, 128, 3}, []int{0, 2}, []int{1, 2}},
		{[]int{256, 256, 256}, []int{0, 1}, []int{0, 2}},
		{[]int{4, 256, 256}, []int{0, 1}, []int{0, 2}},
		{[]int{4, 256, 128, 128}, []int{0, 2, 3}, []int{0, 1, 2}},
		{[]int{512, 127}, []int{-1}, []int{-1}},
	} {
		for i, want := range [][]int{c.row, c.column} {
			s := memory.Adafactor.States(c.shape)[i]
			if !slices.Equal(s.Dims, want) {
				t.Errorf("%v: %s has dimensions %v, want %v", c.shape, s.Name, s.Dims, want)
			}
			for k, d := range s.Dims {
				if size := s.Shape[k]; d >= 0 && size != c.shape[d] || d < 0 && size != 1 {
					t.Errorf("%v: %s has shape %v", c.shape, s.Name, s.Shape)
				}
			}
		}
	}
}
