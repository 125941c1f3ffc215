package picture_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/tests/documents"
)

func BenchmarkText(b *testing.B) {
	for _, devices := range []int{8, 4096, 1 << 20} {
		l := documents.New(b, documents.Large(devices))
		b.Run(fmt.Sprint(devices), func(b *testing.B) {
			for b.Loop() {
				picture.Text(l, picture.Options{})
			}
		})
	}
}
