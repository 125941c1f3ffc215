package host_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/wasm/host"
)

// The modules, as build.sh builds them, with a validator and a planner, which all
// tests share.
var (
	guestPath, strategyPath string
	guest, strategyGuest    []byte
	cacheDir                string
	validator               *host.Validator
	planner                 *host.Planner
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
	guestPath, strategyPath, cacheDir = filepath.Join(dir, "meshfeed.wasm"), filepath.Join(dir, "strategy.wasm"), filepath.Join(dir, "cache")
	guest, strategyGuest = build("layout", guestPath), build("strategy", strategyPath)
	if validator, err = host.Open(context.Background(), guest, host.Options{CacheDir: cacheDir}); err != nil {
		panic(err)
	}
	defer validator.Close()
	if planner, err = host.OpenPlanner(context.Background(), strategyGuest, host.Options{CacheDir: cacheDir}); err != nil {
		panic(err)
	}
	defer planner.Close()
	return m.Run()
}

func build(name, out string) []byte {
	if text, err := exec.Command("../guest/build.sh", name, out).CombinedOutput(); err != nil {
		panic(string(text) + err.Error())
	}
	module, err := os.ReadFile(out)
	if err != nil {
		panic(err)
	}
	return module
}

// node returns the path of the Node that make fetched, or of the system's.
func node(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"../../.build/node/bin/node", "node"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: there is neither .build/node, which make page fetches, nor a node on PATH")
	return ""
}

// question is a question to the guest, in the form that shim.mjs reads.
type question struct {
	Name  string    `json:"-"`
	Ask   string    `json:"ask"`
	Input []byte    `json:"input,omitempty"`
	Size  int64     `json:"size,omitempty"`
	Args  [4]uint32 `json:"args"`
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
