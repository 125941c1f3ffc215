package gather

import (
	"reflect"
	"testing"
)

// TestCompile checks how boxes merge, because the loops decide the speed.
func TestCompile(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape []int
		size  int
		boxes [][][2]int
		want  []piece
		bytes int
	}{
		{"scalar", nil, 8, [][][2]int{{}}, []piece{{run: 8, inner: loop{1, 0}, passes: 1}}, 8},
		{"whole", []int{32, 32, 3}, 4, [][][2]int{{{0, 32}, {0, 32}, {0, 3}}}, []piece{{run: 12288, inner: loop{1, 0}, passes: 1}}, 12288},
		{"half of the lines", []int{8, 8}, 4, [][][2]int{{{4, 8}, {0, 8}}}, []piece{{first: 128, run: 128, inner: loop{1, 0}, passes: 1}}, 128},
		{"half of the columns", []int{8, 8}, 4, [][][2]int{{{0, 8}, {4, 8}}}, []piece{{first: 16, run: 16, inner: loop{8, 32}, passes: 1}}, 128},
		{"the dimensions outside merge", []int{5, 8, 8}, 1, [][][2]int{{{0, 5}, {0, 8}, {4, 8}}}, []piece{{first: 4, run: 4, inner: loop{40, 8}, passes: 1}}, 160},
		{"unless one is cut", []int{5, 8, 8}, 1, [][][2]int{{{0, 5}, {0, 6}, {4, 8}}},
			[]piece{{first: 4, run: 4, inner: loop{6, 8}, outer: []loop{{5, 64}}, passes: 5}}, 120},
		{"boxes that touch", []int{8, 4}, 2, [][][2]int{{{0, 2}, {0, 4}}, {{2, 3}, {0, 4}}}, []piece{{run: 24, inner: loop{1, 0}, passes: 1}}, 24},
		{"boxes that do not", []int{8}, 4, [][][2]int{{{6, 8}}, {{0, 2}}},
			[]piece{{first: 24, run: 8, inner: loop{1, 0}, passes: 1}, {at: 8, run: 8, inner: loop{1, 0}, passes: 1}}, 16},
		{"nothing", []int{8}, 4, [][][2]int{{{3, 3}}}, nil, 0},
	} {
		p := Compile(c.shape, c.size, c.boxes, Copy)
		for i := range p.pieces {
			if len(p.pieces[i].outer) == 0 {
				p.pieces[i].outer = nil
			}
		}
		if !reflect.DeepEqual(p.pieces, c.want) || p.Bytes() != c.bytes {
			t.Errorf("%s: got %+v, %d bytes", c.name, p.pieces, p.Bytes())
		}
	}
}

func TestExtent(t *testing.T) {
	for _, c := range []struct {
		conv Conversion
		want int
	}{{Copy, 4 * 14}, {Bits, 14}, {Int64ToInt32, 8 * 14}, {Complex128ToComplex64, 16 * 14}} {
		p := Compile([]int{4, 5}, 4, [][][2]int{{{0, 3}, {1, 4}}}, c.conv)
		if p.extent != c.want {
			t.Errorf("conversion %d: got %d, want %d", c.conv, p.extent, c.want)
		}
	}
}
