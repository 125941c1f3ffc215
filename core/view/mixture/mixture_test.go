package mixture

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/golden"
)

// seeded returns random numbers, and prints their seed if the test fails.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

func mix(t testing.TB, seed int64, stages ...Stage) *Mixture {
	t.Helper()
	m, err := New(seed, stages)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDraws walks random mixtures with random stages, and counts.
func TestDraws(t *testing.T) {
	r := seeded(t)
	for range 30 {
		sources := 1 + r.IntN(20)
		stages := []Stage{{0, random(r, sources)}}
		for range r.IntN(4) {
			stages = append(stages, Stage{stages[len(stages)-1].Start + 1 + r.Int64N(500), random(r, sources)})
		}
		m := mix(t, r.Int64(), stages...)
		draws := make([]Draw, 2000)
		m.Draws(0, draws)
		counts := make([]int64, sources)
		for n, d := range draws {
			if d.Number != counts[d.Source] {
				t.Fatalf("stages %v: draw %d is %v, after %d rows of the source", stages, n, d, counts[d.Source])
			}
			counts[d.Source]++
			if back, ok := m.Position(d.Source, d.Number); back != int64(n) || !ok {
				t.Fatalf("stages %v: %v is at draw %d, not %d", stages, d, n, back)
			}
		}
		for range 50 {
			n, source := r.IntN(len(draws)+1), r.IntN(sources)
			count := int64(0)
			for _, d := range draws[:n] {
				if d.Source == source {
					count++
				}
			}
			if got := m.Count(source, int64(n)); got != count {
				t.Fatalf("stages %v: source %d has %d of %d draws, not %d", stages, source, count, n, got)
			}
			part := make([]Draw, r.IntN(200))
			from := r.IntN(len(draws) - len(part))
			m.Draws(int64(from), part)
			if !slices.Equal(part, draws[from:from+len(part)]) {
				t.Fatalf("stages %v: the draws from %d on differ if they are asked alone", stages, from)
			}
		}
	}
}

// TestShares checks the bounds of the package comment.
func TestShares(t *testing.T) {
	r := seeded(t)
	for range 20 {
		weights := random(r, 1+r.IntN(20))
		m, start := mix(t, r.Int64(), Stage{0, weights}), Run*r.Int64N(1<<40)
		draws := make([]Draw, 100*Run)
		m.Draws(start, draws)
		exact := integers(weights)
		for source, w := range exact {
			count := m.Count(source, start)
			for k, d := range draws {
				if d.Source == source {
					count++
				}
				n := uint64(start) + uint64(k) + 1
				deviation := float64(count-int64(n/Total*w)) - float64(n%Total)*float64(w)/Total
				share := float64(w) / Total
				limit := bound
				if n%Run != 0 {
					limit += Run * share * (1 - share)
				}
				if math.Abs(deviation) > limit {
					t.Fatalf("weights %v: source %d deviates by %.3f after %d draws", weights, source, deviation, n)
				}
			}
		}
	}
}

// TestAChangeOfWeightsComesLater checks that a new stage changes no draw before it.
func TestAChangeOfWeightsComesLater(t *testing.T) {
	before := mix(t, 3, Stage{0, []float64{4, 1, 0}})
	after := mix(t, 3, Stage{0, []float64{4, 1, 0}}, Stage{1000, []float64{1, 1, 2}})
	old, now := make([]Draw, 1200), make([]Draw, 1200)
	before.Draws(0, old)
	after.Draws(0, now)
	if !slices.Equal(old[:1000], now[:1000]) {
		t.Error("draws before the change differ")
	}
	if slices.Equal(old, now) {
		t.Error("draws after the change do not differ")
	}
	if _, ok := before.Position(2, 0); ok {
		t.Error("a source without a weight has rows")
	}
	if at, ok := after.Position(2, 0); !ok || at < 1000 || at > 1010 {
		t.Errorf("the new source begins at draw %d", at)
	}
}

// TestASmallSourceGetsItsRows checks a source with a millionth of the draws.
func TestASmallSourceGetsItsRows(t *testing.T) {
	m := mix(t, 0, Stage{0, []float64{1, 1e-6}})
	if n := m.Count(1, 100_000_000); n < 99 || n > 101 {
		t.Errorf("the source has %d of 100,000,000 draws", n)
	}
}

// TestDevicesGetEqualShares checks that draws are not periodic: each of four devices, which take
// draws in turns, gets both sources.
func TestDevicesGetEqualShares(t *testing.T) {
	for _, weights := range [][]float64{{1, 1}, {1, 3}, {1, 7}} {
		m, draws := mix(t, 0, Stage{0, weights}), make([]Draw, 64_000)
		m.Draws(0, draws)
		for device := range 4 {
			first := 0
			for n := device; n < len(draws); n += 4 {
				first += 1 - draws[n].Source
			}
			expected := 16_000 / (1 + weights[1])
			if d := float64(first) - expected; math.Abs(d) > 5*math.Sqrt(expected) {
				t.Errorf("weights %v: device %d takes %d rows of source 0, not about %.0f", weights, device, first, expected)
			}
		}
	}
}

func TestIntegers(t *testing.T) {
	r := seeded(t)
	for range 200 {
		weights := random(r, 1+r.IntN(1000))
		sum, total := 0.0, uint64(0)
		for _, w := range weights {
			sum += w
		}
		out := integers(weights)
		for i, n := range out {
			total += n
			if exact := weights[i] / sum * Total; n == 0 || math.Abs(float64(n)-exact) > 2000 {
				t.Fatalf("weights %v: %v is %d of %.1f", weights, weights[i], n, exact)
			}
		}
		if total != Total {
			t.Fatalf("weights %v have the sum %d", weights, total)
		}
	}
	for weights, expected := range map[[3]float64][]uint64{
		{0, 2, 2}:                            {0, Total / 2, Total / 2},
		{math.MaxFloat64 / MaxSources, 0, 0}: {Total, 0, 0},
		{1, math.SmallestNonzeroFloat64, 0}:  {Total - 1, 1, 0},
		{math.SmallestNonzeroFloat64, 0, 0}:  {Total, 0, 0},
	} {
		if got := integers(weights[:]); !slices.Equal(got, expected) {
			t.Errorf("%v: got %d, expected %d", weights, got, expected)
		}
	}
}

// TestTheMostSources checks random draws of the most sources.
func TestTheMostSources(t *testing.T) {
	weights := make([]float64, MaxSources)
	for i := range weights {
		weights[i] = float64(1 + i%7)
	}
	m, draws := mix(t, 0, Stage{0, weights}), make([]Draw, 1000)
	m.Draws(1<<50, draws)
	for n, d := range draws {
		if at, ok := m.Position(d.Source, d.Number); !ok || at != 1<<50+int64(n) {
			t.Fatalf("%v is at draw %d", d, at)
		}
	}
}

func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var text strings.Builder
	for _, stages := range [][]Stage{
		{},
		{{0, nil}},
		{{0, make([]float64, MaxSources+1)}},
		{{5, []float64{1}}},
		{{0, []float64{1, -2}}},
		{{0, []float64{nan}}},
		{{0, []float64{1, inf}}},
		{{0, []float64{0, 0}}},
		{{0, []float64{1}}, {0, []float64{1}}},
		{{0, []float64{1}}, {9, []float64{1}}, {8, []float64{1}}},
		{{0, []float64{1}}, {9, []float64{1, 2}}},
		{{0, []float64{1}}, {MaxDraws + 1, []float64{1}}},
	} {
		_, err := New(0, stages)
		if status.CodeOf(err) != status.InvalidArgument {
			t.Fatalf("%v: %v", stages, err)
		}
		fmt.Fprintln(&text, err)
	}
	golden.Compare(t, "testdata/errors.txt", text.String())
}

// TestTheConstructionIsFrozen compares draws with the draws of the first release. No line of the file may change.
func TestTheConstructionIsFrozen(t *testing.T) {
	var text strings.Builder
	for _, c := range []struct {
		seed   int64
		stages []Stage
		start  int64
	}{
		{0, []Stage{{0, []float64{1, 1}}}, 0},
		{7, []Stage{{0, []float64{1, 1}}}, 0},
		{0, []Stage{{0, []float64{0.7, 0.2, 0.1}}}, 1 << 40},
		{-1, []Stage{{0, []float64{0.8, 0.2}}, {100, []float64{0.5, 0.5}}}, 80},
		{3, []Stage{{0, []float64{1, 1e-6, 0, 5, 5, 5}}}, 999_000},
	} {
		draws := make([]Draw, 10_000)
		mix(t, c.seed, c.stages...).Draws(c.start, draws)
		fmt.Fprintf(&text, "%s seed %d, %v from %d\n", Name, c.seed, c.stages, c.start)
		for _, d := range draws[:40] {
			fmt.Fprintf(&text, " %d:%d", d.Source, d.Number)
		}
		fmt.Fprintf(&text, "\n %x\n", sha256.Sum256(fmt.Append(nil, draws)))
	}
	golden.Compare(t, "testdata/draws.txt", text.String())
}

func BenchmarkDraws(b *testing.B) {
	for _, sources := range []int{2, 8, 64} {
		m, draws := mix(b, 0, Stage{0, random(rand.New(rand.NewPCG(1, 1)), sources)}), make([]Draw, 1024)
		b.Run(fmt.Sprintf("%d sources", sources), func(b *testing.B) {
			for i := range b.N {
				m.Draws(int64(i)*1024, draws)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/draw")
		})
	}
}
