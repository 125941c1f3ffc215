package document_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/tests/documents"
)

func BenchmarkReport(b *testing.B) {
	for _, devices := range []int{8, 4096, 1 << 20} {
		for _, tables := range []bool{false, true} {
			l := documents.New(b, documents.Large(devices))
			b.Run(fmt.Sprintf("%d/tables=%t", devices, tables), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.SetBytes(int64(len(document.Report(l, document.ReportOptions{Tables: tables}))))
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string][]byte{"digits": []byte(documents.Digits), "65536": deviceByDevice(1 << 16)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := document.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
