package permutation_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// BenchmarkFill measures Fill for batches of consecutive positions. Size 1797 is a
// table; the larger ones are Feistel networks.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int64{1797, 50_000, 1_000_000, 1 << 40} {
		for _, batch := range []int{32, 128, 4096} {
			if int64(batch) > n {
				continue
			}
			b.Run(fmt.Sprintf("n=%d/batch=%d", n, batch), func(b *testing.B) {
				p := permutation.New(n, 1, 2)
				dst := make([]int64, batch)
				position := int64(0)
				for b.Loop() {
					if position+int64(batch) > n {
						position = 0
					}
					p.Fill(dst, position)
					position += int64(batch)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch), "ns/position")
			})
		}
	}
}

// BenchmarkAt measures At for one position after the other.
func BenchmarkAt(b *testing.B) {
	for _, n := range []int64{1797, 1_000_000, 1 << 40} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := permutation.New(n, 1, 2)
			i, sum := int64(0), int64(0)
			for b.Loop() {
				if i++; i == n {
					i = 0
				}
				sum += p.At(i)
			}
			_ = sum
		})
	}
}

// BenchmarkNew measures New. Sizes up to TableSize shuffle a table.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int64{64, 1797, 4096, 1 << 40} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				permutation.New(n, 1, 2)
			}
		})
	}
}
