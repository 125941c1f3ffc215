package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/wasm/host"
	"github.com/meshfeed/meshfeed/wasm/internal/reply"
)

const small = `{"meshfeed":1,"mesh":{"axes":[["data",4]]},"arrays":{"x":{"shape":["B",8],"dtype":"float32","spec":["data"]}},"batch":{"size":30}}`

func TestVersions(t *testing.T) {
	if host.Version != reply.Version {
		t.Errorf("the host has version %d, the guest %d", host.Version, reply.Version)
	}
}

// TestManyGoroutines calls from many goroutines, about different documents.
func TestManyGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		text := strings.ReplaceAll(small, "30", []string{"28", "30", "32", "36"}[g%4])
		var native reply.Validator
		want := native.Describe([]byte(text))
		wg.Go(func() {
			for range 5 {
				if got, err := validator.Describe(t.Context(), []byte(text)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("got %.100s, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNoModule(t *testing.T) {
	for want, code := range map[string]string{
		"host: the file is not a WebAssembly module: ":                                             "PAR1",
		"host: the module does not export _initialize, so it is not a layout validator; make wasm": "\x00asm\x01\x00\x00\x00",
	} {
		_, err := host.Open(t.Context(), []byte(code), host.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestUnfitModule opens a module that is cut off, and one that needs more memory
// than the options allow.
func TestUnfitModule(t *testing.T) {
	const build = "make wasm builds one as .build/meshfeed.wasm"
	for _, c := range []struct {
		code    []byte
		options host.Options
		want    string
	}{
		{module[:1000], host.Options{}, "; " + build},
		{module, host.Options{MemoryPages: 1}, "over limit of 1 pages (64 Ki); if it needs more memory, raise Options.MemoryPages; " + build},
	} {
		_, err := host.Open(t.Context(), c.code, c.options)
		if err == nil || !strings.HasPrefix(err.Error(), "host: the module cannot be compiled: ") || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestCancelled calls with a context that is done.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := validator.Describe(ctx, []byte(small))
	if !errors.Is(err, context.Canceled) || status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	if _, err := validator.Describe(t.Context(), []byte(small)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestClosed(t *testing.T) {
	v, err := host.Open(t.Context(), module, host.Options{CacheDir: cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if _, err := v.Samples(t.Context(), nil); err == nil || err.Error() != "host: the layout validator is closed" {
		t.Errorf("got %v", err)
	}
}

func TestCacheIsKept(t *testing.T) {
	files, err := os.ReadDir(cacheDir)
	if err != nil || len(files) == 0 {
		t.Errorf("the cache holds %v, %v", files, err)
	}
	_, err = host.Open(t.Context(), module, host.Options{CacheDir: "host_test.go"})
	if err == nil || !strings.HasPrefix(err.Error(), "host: the cache in host_test.go: ") || status.CodeOf(err) != status.IO {
		t.Errorf("got %v", err)
	}
}
