package host_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/tests/guest"
	"github.com/meshfeed/meshfeed/wasm/host"
)

// The module, as build.sh builds it, with a validator, which all tests share.
var (
	modulePath string
	module     []byte
	cacheDir   string
	validator  *host.Validator
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	modulePath, cacheDir = filepath.Join(dir, "meshfeed.wasm"), filepath.Join(dir, "cache")
	if module, err = guest.Build("layout", modulePath); err != nil {
		panic(err)
	}
	if validator, err = host.Open(context.Background(), module, host.Options{CacheDir: cacheDir}); err != nil {
		panic(err)
	}
	defer validator.Close()
	return m.Run()
}

// document is a golden layout document.
type document struct {
	name string
	text []byte
}

// goldenDocuments returns the documents of the table, those with a golden picture,
// and the layouts of the guide.
func goldenDocuments(t testing.TB) []document {
	t.Helper()
	list := tableDocuments(t)
	for _, pattern := range []string{"../../core/layout/picture/testdata/svg/*.json", "../../docs/layouts/*.json"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			list = append(list, document{filepath.Base(path), read(t, path)})
		}
	}
	return list
}

// tableDocuments reads core/layout/document/testdata/documents.json, which its
// README describes.
func tableDocuments(t testing.TB) []document {
	t.Helper()
	var cases []struct {
		Name string
		Text []json.RawMessage
	}
	if err := json.Unmarshal(read(t, "../../core/layout/document/testdata/documents.json"), &cases); err != nil {
		t.Fatal(err)
	}
	var list []document
	for _, c := range cases {
		d := document{name: c.Name}
		for _, part := range c.Text {
			d.text = append(d.text, expand(t, part)...)
		}
		list = append(list, d)
	}
	return list
}

// expand returns the text of a part: a string, {"repeat","times"} or {"hex"}.
func expand(t testing.TB, part json.RawMessage) []byte {
	t.Helper()
	var text string
	if json.Unmarshal(part, &text) == nil {
		return []byte(text)
	}
	var o struct {
		Repeat, Hex string
		Times       int
	}
	if err := json.Unmarshal(part, &o); err != nil {
		t.Fatal(err)
	}
	out, err := hex.DecodeString(o.Hex)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Times {
		out = append(out, strings.ReplaceAll(o.Repeat, "#", strconv.Itoa(i))...)
	}
	return out
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
