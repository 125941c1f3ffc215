package host_test

import (
	"context"
	"os"
	"testing"

	"github.com/meshfeed/meshfeed/wasm/host"
)

// BenchmarkDescribe describes the largest example layout, by a call that can be
// interrupted and by one that cannot.
func BenchmarkDescribe(b *testing.B) {
	text, err := os.ReadFile("../../docs/layouts/08-65536-devices.json")
	if err != nil {
		b.Fatal(err)
	}
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"interruptible": cancellable, "not": context.Background()} {
		b.Run(name, func(b *testing.B) {
			v, err := host.Open(ctx, module, host.Options{CacheDir: cacheDir})
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			for b.Loop() {
				if _, err := v.Describe(ctx, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
