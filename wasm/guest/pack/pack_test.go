package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// linked gives the module of the least program.
func linked(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	source, module := filepath.Join(dir, "main.go"), filepath.Join(dir, "main.wasm")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", module, source)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	text, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// memory gives what is in the memory of an instance whose program has not begun.
func memory(t *testing.T, module []byte) []byte {
	t.Helper()
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { runtime.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	instance, err := runtime.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	text, _ := instance.Memory().Read(0, instance.Memory().Size())
	return text
}

// TestPack sees that a program begins with the same memory, and that much is saved.
func TestPack(t *testing.T) {
	text := linked(t)
	packed, ok := pack(bytes.Clone(text))
	if !ok {
		t.Fatal("no table was found: has this release of Go another one?")
	}
	if saved := len(text) - len(packed); saved < 100_000 {
		t.Errorf("packing saves %d bytes of %d", saved, len(text))
	}
	before, after := memory(t, text), memory(t, packed)
	if !bytes.Equal(before, after) {
		at := 0
		for at < min(len(before), len(after)) && before[at] == after[at] {
			at++
		}
		t.Errorf("memory differs from byte %d on, of %d and %d", at, len(before), len(after))
	}
	if _, again := pack(packed); again {
		t.Error("a packed module was packed")
	}
}

func TestPackFile(t *testing.T) {
	for name, text := range map[string]string{"no module": "\x7fELF", "no table": magic + "\x0b\x01\x00"} {
		path := filepath.Join(t.TempDir(), "module")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := packFile(path); (err == nil) != (name == "no table") {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%s: the file is %q, %v", name, after, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 127, 128, 8191, 8192, 1<<31 - 1} {
		r := reader(append(uvarint(n), varint(n)...))
		if a, b := r.uvarint(), r.varint(); a != n || b != n || len(r) > 0 {
			t.Errorf("%d is read as %d and %d, with %d bytes left", n, a, b, len(r))
		}
	}
	if r := reader("\x7f"); r.varint() != -1 {
		t.Error("-1 is not read")
	}
}
