package layout_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/tests/documents"
)

var sizes = []int{8, 4096, 1 << 20}

func BenchmarkNew(b *testing.B) { benchmarkNew(b, layout.LoadProcess) }

// BenchmarkNewReshard also counts what moves.
func BenchmarkNewReshard(b *testing.B) { benchmarkNew(b, layout.LoadReshard) }

func benchmarkNew(b *testing.B, loading string) {
	for _, devices := range sizes {
		d := documents.Large(devices)
		d.Loading = loading
		b.Run(fmt.Sprint(devices), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if l, err := layout.New(d); err != nil || l.Err() != nil {
					b.Fatal(err, l.Err())
				}
			}
		})
	}
}

func BenchmarkProcess(b *testing.B) {
	l := documents.New(b, documents.Large(1<<20))
	b.ReportAllocs()
	for b.Loop() {
		l.Process(777)
	}
}
