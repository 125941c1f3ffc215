package packing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/view/packing"
)

// BenchmarkPlan plans one group of 65,536 documents.
func BenchmarkPlan(b *testing.B) {
	for _, mean := range []float64{250, 700, 20000} {
		for _, length := range []int{2048, 8192, 131072} {
			b.Run(fmt.Sprintf("mean %v in %d", mean, length), func(b *testing.B) {
				lengths := logNormal(rand.New(rand.NewPCG(1, 2)), 1<<16, mean, 1)
				for b.Loop() {
					plan(b, lengths, packing.Options{Length: length, Group: 1 << 16})
				}
			})
		}
	}
}

// BenchmarkOpen plans 10^7 documents.
func BenchmarkOpen(b *testing.B) {
	lengths := logNormal(rand.New(rand.NewPCG(1, 2)), 10_000_000, 700, 1)
	for _, method := range []packing.Method{packing.BestFit, packing.Split} {
		b.Run(string(method), func(b *testing.B) {
			for b.Loop() {
				plan(b, lengths, packing.Options{Length: 2048, Method: method})
			}
		})
	}
}

// BenchmarkResume finds a row of a group whose plan is not in memory, and of one in memory.
func BenchmarkResume(b *testing.B) {
	lengths := logNormal(rand.New(rand.NewPCG(1, 2)), 1_000_000, 700, 1)
	p := plan(b, lengths, packing.Options{Length: 2048})
	var pieces []packing.Piece
	find := func(b *testing.B, forget bool) {
		for b.Loop() {
			if forget {
				p.Forget()
			}
			pieces, _ = p.Row(b.Context(), rand.Int64N(p.Rows()), pieces[:0])
		}
	}
	b.Run("planned", func(b *testing.B) { find(b, true) })
	b.Run("in memory", func(b *testing.B) { find(b, false) })
}
