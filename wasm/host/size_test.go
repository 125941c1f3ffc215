package host_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Budgets of the modules in bytes, so that a new dependency does not go unnoticed. Of
// 4 MB, the Go runtime takes 2.0 and package fmt 0.7, with os and reflect.
const (
	maxLayout, maxLayoutBrotli     = 4_230_000, 830_000
	maxStrategy, maxStrategyBrotli = 4_990_000, 962_000
)

const brotli = `const z = require("zlib"), b = require("fs").readFileSync(process.argv[1]), c = z.constants;
console.log(z.brotliCompressSync(b, { params: { [c.BROTLI_PARAM_QUALITY]: 11, [c.BROTLI_PARAM_LGWIN]: 24, [c.BROTLI_PARAM_SIZE_HINT]: b.length } }).length)`

func TestSize(t *testing.T) {
	for _, m := range []struct {
		path            string
		raw, compressed int
	}{{guestPath, maxLayout, maxLayoutBrotli}, {strategyPath, maxStrategy, maxStrategyBrotli}} {
		t.Run(filepath.Base(m.path), func(t *testing.T) {
			size := len(read(t, m.path))
			t.Logf("%d bytes", size)
			if size > m.raw {
				t.Errorf("the module has %d bytes, its budget is %d", size, m.raw)
			}
			out, err := exec.Command(node(t), "-e", brotli, m.path).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes compressed", n)
			if n > m.compressed {
				t.Errorf("compressed, the module has %d bytes, its budget is %d", n, m.compressed)
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
