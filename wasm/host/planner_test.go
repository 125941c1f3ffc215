package host_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/wasm/host"
	"github.com/meshfeed/meshfeed/wasm/internal/advice"
)

func TestPlannerVersion(t *testing.T) {
	if host.Version != advice.Version {
		t.Errorf("the host has version %d, the planner %d", host.Version, advice.Version)
	}
}

// A module of one kind is not used as the other one.
func TestKindsOfModules(t *testing.T) {
	_, err := host.Open(t.Context(), strategyGuest, host.Options{CacheDir: cacheDir})
	want := "host: the module does not export mf_describe, so it is not a layout validator; make wasm builds one as .build/meshfeed.wasm"
	if err == nil || err.Error() != want || status.CodeOf(err) != status.Incompatible {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = host.OpenPlanner(t.Context(), guest, host.Options{CacheDir: cacheDir})
	want = "host: the module does not export mf_advise, so it is not a strategy planner; make wasm builds one as .build/strategy.wasm"
	if err == nil || err.Error() != want || status.CodeOf(err) != status.Incompatible {
		t.Errorf("got %v, want %s", err, want)
	}
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

// TestPlannerParity compares every reply, byte for byte, with that of this process.
func TestPlannerParity(t *testing.T) {
	for _, text := range strategies(t) {
		comparePlanner(t.Context(), t, text)
	}
	want := advice.Catalog()
	got, err := planner.Catalog(t.Context())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the catalog is %.300s, %v\nwant %.300s", got, err, want)
	}
}

// TestPlannerDiagrams compares the reply about every diagram of package diagram, byte
// for byte, with that of this process.
func TestPlannerDiagrams(t *testing.T) {
	paths, err := filepath.Glob("../../core/plan/diagram/document/testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	drawn := 0
	for _, path := range paths {
		text := read(t, path)
		want := advice.Diagram(text, 500)
		got, err := planner.Diagram(t.Context(), text, 500)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s\ngot %.500s, %v\nwant %.500s", path, got, err, want)
		}
		if bytes.Contains(want, []byte(`"error":null`)) {
			drawn++
		}
	}
	if drawn < 10 {
		t.Errorf("only %d diagrams were drawn", drawn)
	}
}

// TestPlannerParityOfRandomDocuments asks the faster code, which cannot be interrupted.
func TestPlannerParityOfRandomDocuments(t *testing.T) {
	planned := 0
	random.Rounds(t, 60, 1000, func(t *testing.T, r *rand.Rand) {
		if comparePlanner(context.Background(), t, randomStrategy(r)) {
			planned++
		}
	})
	t.Logf("%d documents have candidates", planned)
}

// comparePlanner reports whether a document has candidates. The context decides which
// compilation answers.
func comparePlanner(ctx context.Context, t *testing.T, text []byte) bool {
	t.Helper()
	want := advice.Advise(text)
	got, err := planner.Advise(ctx, text)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s\ngot %.500s, %v\nwant %.500s", text, got, err, want)
	}
	return bytes.Contains(want, []byte(`"candidates":[{`))
}

// TestPlannerParityWithNode compares the replies of the module in Node.
func TestPlannerParityWithNode(t *testing.T) {
	program := node(t)
	list := strategies(t)
	r := random.New(t)
	for range 20 {
		list = append(list, randomStrategy(r))
	}
	var input strings.Builder
	enc := json.NewEncoder(&input)
	for _, text := range list {
		if err := enc.Encode(question{Ask: "advise", Input: text}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "testdata/shim.mjs", strategyPath)
	cmd.Stdin = strings.NewReader(input.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	lines := strings.Fields(string(out))
	if len(lines) != len(list) {
		t.Fatalf("%d replies to %d questions: %s", len(lines), len(list), stderr.String())
	}
	for i, line := range lines {
		got, err := base64.StdEncoding.DecodeString(line)
		if want := advice.Advise(list[i]); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s\ngot %.500s, %v\nwant %.500s", list[i], got, err, want)
		}
	}
}
