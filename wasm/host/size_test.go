package host_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Budgets of the modules in bytes, as they are and as gzip, so that a new
// dependency does not go unnoticed. Of 4 MB, the Go runtime takes 2.0 and package fmt 0.7,
// with os and reflect.
const (
	maxLayout, maxLayoutPacked     = 4_230_000, 1_128_000
	maxStrategy, maxStrategyPacked = 4_990_000, 1_310_000
)

func TestSize(t *testing.T) {
	for _, m := range []struct {
		path        string
		module      []byte
		raw, packed int
	}{{guestPath, guest, maxLayout, maxLayoutPacked}, {strategyPath, strategyGuest, maxStrategy, maxStrategyPacked}} {
		t.Run(filepath.Base(m.path), func(t *testing.T) {
			var packed bytes.Buffer
			w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(m.module); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes, %d as gzip", len(m.module), packed.Len())
			if len(m.module) > m.raw || packed.Len() > m.packed {
				t.Errorf("the module has %d bytes and %d as gzip, its budgets are %d and %d", len(m.module), packed.Len(), m.raw, m.packed)
			}
		})
	}
}

// TestReproducible builds the module in another folder, from a copy of the
// sources.
func TestReproducible(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy of the sources")
	for _, part := range []string{"core", "internal", "wasm/guest", "wasm/internal", "go.mod", "go.sum"} {
		to := filepath.Join(dir, part)
		from := filepath.Join("../..", part)
		if strings.HasPrefix(part, "go.") {
			if err := os.WriteFile(to, read(t, from), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "other.wasm")
	if text, err := exec.Command(filepath.Join(dir, "wasm/guest/build.sh"), "strategy", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if other := read(t, out); !bytes.Equal(other, strategyGuest) {
		t.Errorf("two folders give %x and %x", sha256.Sum256(strategyGuest), sha256.Sum256(other))
	}
}
