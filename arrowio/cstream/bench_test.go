package cstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// BenchmarkGather gathers 4,096 random rows of a million per step, of 160 bytes and
// of 4 bytes, into one block and into eight.
func BenchmarkGather(b *testing.B) {
	const records, step = 1_000_000, 4096
	matrix, label := make([]float32, 40*records), make([]int32, records)
	for i := range matrix {
		matrix[i] = 1
	}
	for i := range label {
		label[i] = 1
	}
	fields := []Array{
		{Name: "x", Type: dtype.Float32, Data: unsafe.Pointer(&matrix[0]), Shape: []int{records, 40}},
		{Name: "y", Type: dtype.Int32, Data: unsafe.Pointer(&label[0]), Shape: []int{records}},
	}
	order := make([]int64, 64*step)
	for i := range order {
		order[i] = rand.Int64N(records)
	}
	for i := range fields {
		for _, blocks := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%dblocks", fields[i].Name, blocks), func(b *testing.B) {
				src, err := FromArrays(fields[i:i+1], func() {})
				if err != nil {
					b.Fatal(err)
				}
				defer src.Close()
				f := src.Schema().Fields[0]
				box := make([][2]int, len(f.Shape))
				for d, n := range f.Shape {
					box[d][1] = n
				}
				g, err := src.Gatherer([]source.Part{{To: f.Type, Boxes: [][][2]int{box}}})
				if err != nil {
					b.Fatal(err)
				}
				defer g.Close()
				jobs := make([]source.Job, blocks)
				for k := range jobs {
					jobs[k].Rows = [2]int{k * step / blocks, (k + 1) * step / blocks}
					jobs[k].Dst = make([]byte, step/blocks*f.RowBytes())
				}
				b.SetBytes(int64(step * f.RowBytes()))
				at := 0
				for b.Loop() {
					if err := g.Gather(context.Background(), source.Draw{}, order[at:at+step], jobs); err != nil {
						b.Fatal(err)
					}
					at = (at + step) % len(order)
				}
			})
		}
	}
}
