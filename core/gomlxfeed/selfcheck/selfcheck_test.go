package selfcheck

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
)

func opened(t *testing.T, spec string) *gomlxfeed.Devices {
	t.Helper()
	d, err := gomlxfeed.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestRun(t *testing.T) {
	for _, spec := range []string{"go", "virtual:4"} {
		t.Run(spec, func(t *testing.T) {
			var parts []string
			o := Options{Duration: time.Millisecond, Small: true, Progress: func(part string) { parts = append(parts, part) }}
			r, err := Run(t.Context(), opened(t, spec), o)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Passed() || r.Untimed != "" || len(r.Rates) != len(cases) || len(r.Steps) != len(pauses) {
				t.Fatalf("%+v", r)
			}
			if want := len(r.Checks) + len(cases) + 1; len(parts) != want {
				t.Errorf("progress was reported %d times, not %d: %q", len(parts), want, parts)
			}
			for _, b := range r.Rates {
				if b.P50 <= 0 || b.P99 < b.P50 || min(b.Meshfeed, b.Single, b.ByHand, b.Put, b.Copy) <= 0 {
					t.Errorf("%+v", b)
				}
			}
			page := r.Markdown()
			for _, part := range []string{"# meshfeed devices --check: passed", "All 5 checks passed", "## Speed", "## Transfer during a step"} {
				if !strings.Contains(page, part) {
					t.Errorf("%q is not in\n%s", part, page)
				}
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestComparisonsFail changes one byte of the expected data.
func TestComparisonsFail(t *testing.T) {
	s := session{d: opened(t, "virtual:4"), o: Options{Small: true}, random: rand.New(rand.NewPCG(1, 1))}
	w, err := s.wide()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"wide", "label"} {
		f := w.fields[name]
		changed := f
		changed.bytes = append([]byte(nil), f.bytes...)
		changed.bytes[len(f.bytes)/2] ^= 1
		w.fields[name] = changed
		if _, err := s.compareEpochs(t.Context(), w, 1, 3); !errors.Is(err, errMismatch) {
			t.Errorf("a changed byte of %q: %v", name, err)
		}
		if name == "label" {
			ring, err := s.open(w, loader.Options{Epochs: 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.compareTaken(t.Context(), ring); !errors.Is(err, errMismatch) {
				t.Errorf("a changed label for a trainer: %v", err)
			}
			_ = ring.close()
		}
		w.fields[name] = f
	}
}

func TestLeaksAreFound(t *testing.T) {
	s := session{d: opened(t, "virtual:2"), o: Options{Small: true}, random: rand.New(rand.NewPCG(1, 1))}
	w, err := s.wide()
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.open(w, loader.Options{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range gomlxfeed.Placed(t.Context(), f.Loader, s.d) {
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
		break
	}
	if err := f.close(); !errors.Is(err, errMismatch) {
		t.Errorf("a held batch: %v", err)
	}
	if _, err := s.returned(t.Context()); !errors.Is(err, errMismatch) {
		t.Errorf("live buffers: %v", err)
	}
}

func TestRunIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Small: true, Progress: func(string) { cancel() }}
	if _, err := Run(ctx, opened(t, "virtual:2"), o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAPanicIsAResult(t *testing.T) {
	_, err := run(t.Context(), check{"breaks", func(context.Context) (string, error) { panic("broken device") }})
	if err == nil || !strings.Contains(err.Error(), "broken device") {
		t.Error(err)
	}
}

func TestShard(t *testing.T) {
	f := field{typ: dtype.Uint8, shape: []int{2, 3}, bytes: []byte("abcdefABCDEF")}
	index := sharding.Index{{1, 3}, {0, 2}, {1, 3}}
	if got := string(f.shard(index, []int64{0, 1, -1})); got != "BCEF\x00\x00\x00\x00" {
		t.Errorf("%q", got)
	}
}

func TestVerdictOfAFailure(t *testing.T) {
	r := Report{
		Facts:   gomlxfeed.Facts{Name: "virtual", Devices: []string{"a", "b"}},
		Checks:  []Result{{Name: "bytes", Passed: true}, {Name: "meshes", Text: "differs | here"}},
		Untimed: "out of memory",
	}
	const want = "1 of 2 checks FAILED on 2 devices of virtual (meshes): do not train on these batches, and report this page. Nothing was measured: out of memory."
	if got := r.Verdict(); got != want {
		t.Errorf("%q", got)
	}
	if page := r.Markdown(); !strings.Contains(page, `| meshes | **FAILED** | differs \| here | 0.0 |`) {
		t.Error(page)
	}
}
