package certificate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// A run over many epochs has no more spans than one over three.
func TestRunsDoNotGrow(t *testing.T) {
	r := Run{}
	r.Deliver(0, 32, 96, Evidence{})
	for epoch := range int64(10_000) {
		r.Deliver(1+epoch, 0, 64, Evidence{})
		r.Deliver(1+epoch, 64, 96, Evidence{})
		r.Drop(Span{1 + epoch, 1, 96, 100})
		if len(r.Delivered) > 3 || len(r.Dropped) > 2 {
			t.Fatalf("after epoch %d there are %d and %d spans", epoch, len(r.Delivered), len(r.Dropped))
		}
	}
	r, err := r.canonical()
	want := []Span{{0, 1, 32, 96}, {1, 10_000, 0, 96}}
	if err != nil || !slices.Equal(r.Delivered, want) || !slices.Equal(r.Dropped, []Span{{1, 10_000, 96, 100}}) {
		t.Errorf("%v, %v, %v", r.Delivered, r.Dropped, err)
	}
}

// set returns the positions of spans.
func set(spans []Span) map[[2]int64]bool {
	positions := map[[2]int64]bool{}
	for _, s := range spans {
		for e := s.Epoch; e < s.Epoch+s.Epochs; e++ {
			for p := s.First; p < s.Last; p++ {
				positions[[2]int64{e, p}] = true
			}
		}
	}
	return positions
}

func randomSpans(r *rand.Rand, n int) (spans []Span) {
	for range n {
		first := r.Int64N(12)
		spans = append(spans, Span{r.Int64N(5), 1 + r.Int64N(3), first, first + 1 + r.Int64N(6)})
	}
	return spans
}

// All lists of spans with the same positions have the same canonical form.
func TestUnionIsCanonical(t *testing.T) {
	r := random.New(t)
	for range 2000 {
		spans := randomSpans(r, 1+r.IntN(7))
		var pieces []Span
		for at := range set(spans) {
			pieces = append(pieces, Span{at[0], 1, at[1], at[1] + 1})
		}
		whole, err := union(spans)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := union(pieces); err != nil || !slices.Equal(again, whole) || !canonical(whole) {
			t.Fatalf("%v gives %v, its pieces %v (%v)", spans, whole, again, err)
		}
		if n, ok := positions(whole); !ok || int(n) != len(set(spans)) || len(set(whole)) != len(set(spans)) {
			t.Fatalf("%v gives %v", spans, whole)
		}
		if same, err := union(spans); canonical(spans) && (err != nil || !slices.Equal(same, spans)) {
			t.Fatalf("%v is canonical, and gives %v", spans, same)
		}
	}
}

func TestThrough(t *testing.T) {
	for _, c := range []struct {
		first, last Cursor
		want        []Span
	}{
		{Cursor{}, Cursor{}, nil},
		{Cursor{}, Cursor{0, 3}, []Span{{0, 1, 0, 3}}},
		{Cursor{}, Cursor{0, 10}, []Span{{0, 1, 0, 10}}},
		{Cursor{}, Cursor{1, 0}, []Span{{0, 1, 0, 10}}},
		{Cursor{}, Cursor{3, 0}, []Span{{0, 3, 0, 10}}},
		{Cursor{1, 4}, Cursor{4, 2}, []Span{{1, 1, 4, 10}, {2, 2, 0, 10}, {4, 1, 0, 2}}},
		{Cursor{1, 4}, Cursor{2, 2}, []Span{{1, 1, 4, 10}, {2, 1, 0, 2}}},
		{Cursor{1, 4}, Cursor{1, 2}, nil},
		{Cursor{1, 10}, Cursor{2, 0}, nil},
		{Cursor{2, 0}, Cursor{1, 5}, nil},
	} {
		if got := through(c.first, c.last, 10); !slices.Equal(got, c.want) {
			t.Errorf("from %v to %v: %v, want %v", c.first, c.last, got, c.want)
		}
	}
}

func TestProcesses(t *testing.T) {
	r := random.New(t)
	of := func(p Processes) (numbers []int) {
		for _, x := range p {
			for n := x[0]; n < x[1]; n++ {
				numbers = append(numbers, int(n))
			}
		}
		return numbers
	}
	draw := func() (numbers []int) {
		for n := range 12 {
			if r.IntN(2) == 0 {
				numbers = append(numbers, n)
			}
		}
		return numbers
	}
	for range 2000 {
		a, b := draw(), draw()
		var both, rest, either []int
		for n := range 12 {
			inA, inB := slices.Contains(a, n), slices.Contains(b, n)
			if inA && inB {
				both = append(both, n)
			}
			if inA && !inB {
				rest = append(rest, n)
			}
			if inA || inB {
				either = append(either, n)
			}
		}
		p, q := ProcessesOf(a), ProcessesOf(b)
		for what, got := range map[string][2][]int{
			"common": {of(p.common(q)), both}, "without": {of(p.without(q)), rest}, "plus": {of(p.plus(q)), either}, "itself": {of(p), a},
		} {
			if !slices.Equal(got[0], got[1]) || !p.plus(q).valid() || !p.common(q).valid() || !p.without(q).valid() {
				t.Fatalf("%v %s %v: %v, want %v", a, what, b, got[0], got[1])
			}
		}
	}
	for want, p := range map[string]Processes{
		"process 3": {{3, 4}}, "processes 0 to 1": {{0, 2}}, "processes 0, 2 to 4": {{0, 1}, {2, 5}}, "processes 0, 2, 4, and others": {{0, 1}, {2, 3}, {4, 5}, {6, 7}},
	} {
		if p.String() != want {
			t.Errorf("%v is %q, want %q", [][2]int64(p), p, want)
		}
	}
}

// Coverage agrees with a count of every position.
func TestCoverageCounts(t *testing.T) {
	r := random.New(t)
	for range 500 {
		const records = 20
		var runs []Run
		for range r.IntN(5) {
			run := Run{Mesh: Processes{{0, 2}}, Processes: ProcessesOf([]int{r.IntN(2)}), Parts: 1}
			run.Delivered = randomSpans(r, r.IntN(3))
			run.Dropped, run.Skipped = randomSpans(r, r.IntN(2)), randomSpans(r, r.IntN(2))
			runs = append(runs, run)
		}
		c, err := New(Sequence{Records: records}, runs)
		if err != nil {
			t.Fatal(err)
		}
		first, last := Cursor{r.Int64N(3), r.Int64N(records)}, Cursor{r.Int64N(9), r.Int64N(records)}
		got, err := c.Coverage(first, last)
		if err != nil {
			t.Fatal(err)
		}
		checkCoverage(t, c, set(through(first, last, records)), got)
	}
}

func checkCoverage(t *testing.T, c Certificate, wanted map[[2]int64]bool, got Coverage) {
	t.Helper()
	counts := [2]map[[2]int64]int{{}, {}}
	left := map[[2]int64]bool{} // dropped or skipped
	for _, r := range c.runs {
		for at := range set(r.Delivered) {
			for _, p := range r.Processes {
				for n := p[0]; n < p[1]; n++ {
					counts[n][at]++
				}
			}
		}
		for at := range set(slices.Concat(r.Dropped, r.Skipped)) {
			left[at] = true
		}
	}
	missing := set(got.Missing)
	complete := len(got.Missing)+len(got.Absent)+len(got.Repeated) == 0
	right := true
	for at := range wanted {
		a, b := counts[0][at], counts[1][at]
		if missing[at] != (a+b == 0 && !left[at]) {
			t.Fatalf("%v: position %v was delivered %d and %d times, and missing are %v", c, at, a, b, got.Missing)
		}
		right = right && (a == 1 && b == 1 || a+b == 0 && left[at])
	}
	if complete && !right {
		t.Fatalf("%v: %+v is complete", c, got)
	}
	for at := range missing {
		if !wanted[at] {
			t.Fatalf("position %v is missing and was not asked for", at)
		}
	}
}
