package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/tests/guest"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/wasm/internal/advice"
)

// planner builds the module of the planner.
func planner(t *testing.T) (path string, module []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "strategy.wasm")
	module, err := guest.Build("strategy", path)
	if err != nil {
		t.Fatal(err)
	}
	return path, module
}

// strategies returns the documents of the guide, one document for each way to describe
// a model, and documents with an error.
func strategies(t *testing.T) [][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../docs/strategies/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	list := [][]byte{nil}
	for _, text := range []string{
		"\xff", "[]", `{"meshfeed":1}`,
		`{"meshfeed":1,"model":{"preset":"llama3-9b"},"training":{"batch":1},"cluster":{"devices":8}}`,
		`{"meshfeed":1,"model":{"preset":"gpt3-175b"},"training":{"batch":1536,"micro_batch":1},"cluster":{"device":"a100-80","devices":1024}}`,
		`{"meshfeed":1,"model":{"parameters":25557032},"training":{"batch":256},"cluster":{"device":"v100-32","devices":8}}`,
		`{"meshfeed":1,"model":{"tree":{"2":{"shape":[4096,512],"dtype":"bfloat16"},"1":{"shape":[3],"dtype":"float32"}}},"training":{"batch":8},"cluster":{"device":"l4-24","devices":4}}`,
	} {
		list = append(list, []byte(text))
	}
	for _, path := range paths {
		list = append(list, read(t, path))
	}
	return list
}

// randomStrategy returns a document of a random transformer, training and cluster.
// Most are valid.
func randomStrategy(r *rand.Rand) []byte {
	heads := random.One(r, 4, 8, 12, 25, 32)
	transformer := map[string]any{
		"layers": 1 + r.IntN(80), "hidden": 64 * heads, "heads": heads, "ffn": random.One(r, 256*heads, 11008, 14336), "vocab": 100 + r.IntN(200_000),
		"sequence": 1 << (7 + r.IntN(10)), "gated": r.IntN(2) == 0, "tied": r.IntN(2) == 0, "dropout": r.IntN(4) == 0,
	}
	if heads%4 == 0 {
		transformer["kv_heads"] = heads / 4
	}
	if r.IntN(4) == 0 {
		transformer["experts"] = map[string]any{"count": 8, "active": 2, "capacity": random.One(r, 1.0, 1.25, 2.0)}
	}
	training := map[string]any{
		"batch": 1 << r.IntN(12), "optimizer": random.One(r, "adamw", "adafactor", "lion", "sgd", "momentum", "muon"),
		"recomputation": random.One(r, "auto", "none", "dots", "selective", "full"), "attention": random.One(r, "flash", "plain"),
		"schedule": random.One(r, "auto", "1f1b", "gpipe", "interleaved", "zero-bubble"), "efficiency": random.One(r, []float64{0.4, 0.6}, []float64{0.125, 0.99}),
	}
	cluster := map[string]any{
		"devices": random.One(r, 1, 2, 6, 8, 12, 24, 64, 100, 1024, 65536), "device": random.One(r, "a100-40", "h100-80", "l4-24", "tpu-v4", "tpu-v5e", "v100-32"),
	}
	if r.IntN(3) == 0 {
		cluster["network_bytes_per_second"] = 1 + r.IntN(1e11)
	}
	document := map[string]any{"meshfeed": 1, "model": map[string]any{"transformer": transformer}, "training": training, "cluster": cluster, "search": map[string]any{"keep": 1 + r.IntN(40), "pruned": r.IntN(4) == 0}}
	text, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	if r.IntN(8) == 0 {
		text = random.Damage(r, text)
	}
	return text
}

// TestPlannerParity compares the replies of the planner's module, byte for byte, with the
// replies of this process: about documents of strategies, random ones, every diagram of
// package diagram, and the catalog.
func TestPlannerParity(t *testing.T) {
	list := []guest.Question{{Name: "catalog", Ask: "catalog"}}
	for i, text := range strategies(t) {
		list = append(list, guest.Question{Name: "strategy " + strconv.Itoa(i), Ask: "advise", Input: text})
	}
	r := random.New(t)
	for range random.Count(60, 1000) {
		text := randomStrategy(r)
		list = append(list, guest.Question{Name: string(text), Ask: "advise", Input: text})
	}
	paths, err := filepath.Glob("../../core/plan/diagram/document/testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		list = append(list, guest.Question{Name: path, Ask: "diagram", Input: read(t, path), Args: [4]uint32{500}})
	}
	path, _ := planner(t)
	drawn, planned := 0, 0
	for i, got := range guest.Ask(t, path, list) {
		want := native(list[i])
		if !bytes.Equal(got, want) {
			t.Errorf("%s\ngot %.500s\nwant %.500s", list[i].Name, got, want)
		}
		if list[i].Ask == "diagram" && bytes.Contains(want, []byte(`"error":null`)) {
			drawn++
		}
		if bytes.Contains(want, []byte(`"candidates":[{`)) {
			planned++
		}
	}
	if drawn < 10 || planned < 10 {
		t.Errorf("only %d diagrams and %d plans", drawn, planned)
	}
}

// native computes a reply in this process.
func native(q guest.Question) []byte {
	switch q.Ask {
	case "advise":
		return advice.Advise(q.Input)
	case "diagram":
		return advice.Diagram(q.Input, int(q.Args[0]))
	}
	return advice.Catalog()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestModule checks the size of the module, and builds it in another folder, from a copy
// of the sources.
func TestModule(t *testing.T) {
	_, module := planner(t)
	guest.CheckSize(t, module, 5_260_000, 1_360_000)
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
	if other := read(t, out); !bytes.Equal(other, module) {
		t.Errorf("two folders give %x and %x", sha256.Sum256(module), sha256.Sum256(other))
	}
}
