package strategy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/tests/random"
)

// draw returns a random document of a transformer.
func draw(r *rand.Rand) *Document {
	heads := random.One(r, 4, 6, 8, 16)
	m := &Transformer{
		Layers: 1 + r.IntN(12), Heads: heads, KVHeads: random.One(r, 0, 1, 2, heads), Hidden: heads * random.One(r, 32, 64), FFN: random.One(r, 96, 512, 1024),
		Vocab: 1 + r.IntN(5000), Sequence: random.One(r, 128, 384, 4096), Gated: new(r.IntN(2) == 0), Tied: new(r.IntN(2) == 0), Biases: new(r.IntN(2) == 0),
		Dropout: new(r.IntN(2) == 0), Norm: random.One(r, "", "rms", "layer"), Positions: random.One(r, "", "rotary", "learned"),
	}
	if r.IntN(3) == 0 {
		m.Experts = &Experts{Count: random.One(r, 4, 8), Active: 1 + r.IntN(2), Every: min(m.Layers, 1+r.IntN(2)), Shared: r.IntN(2), Capacity: random.One(r, 0, 1250)}
	}
	if m.KVHeads > 0 && heads%m.KVHeads != 0 {
		m.KVHeads = 0
	}
	devices := random.One(r, 1, 2, 6, 8, 24, 64)
	d := &Document{
		Model:   Model{Transformer: m},
		Cluster: Cluster{Device: random.One(r, "h100-80", "a100-40", "tpu-v4", "tpu-v5e", "l4-24"), Devices: devices},
		Training: Training{
			Batch: int64(random.One(r, 8, 24, 64, 96, 128)), Recomputation: random.One(r, "", Auto, None, Selective, Full), Attention: random.One(r, "", Flash, Plain),
			Optimizer: random.One(r, "", "adamw", "adafactor", "lion", "sgd", "muon"), Schedule: random.One(r, "", "1f1b", "gpipe", "interleaved", "zero-bubble"),
			SequenceParallel: new(r.IntN(3) > 0), Overlap: []AxisOverlap{{random.One(r, Axes()...), r.IntN(2) == 0}},
		},
		Search: Search{ZeRO: random.Some(r, 0, 1, 2)},
	}
	if r.IntN(3) == 0 {
		d.Search.Axes = []AxisSizes{{Context, []int{1, 2, 4}}, {Tensor, []int{1, 2, 8, 16}}}
	}
	d.Cluster.MemoryBytes = random.One[int64](r, 0, 10_000_000, 50_000_000, 200_000_000, 1_000_000_000)
	if d.Cluster.Device == "l4-24" || d.Cluster.Device == "tpu-v4" { // the networks of these are not known
		d.Cluster.NetworkBytesPerSecond = 1_000_000_000
	}
	if kinds := []string{"h100-80", "a100-40", "l4-24"}; slices.Contains(kinds, d.Cluster.Device) && devices > 8 || devices == 6 {
		d.Cluster.PerNode = random.One(r, 2, 6, 8)
		if devices%d.Cluster.PerNode != 0 {
			d.Cluster.PerNode = 2
		}
	}
	return d
}

// TestAgainstBruteForce evaluates every candidate again without the caches, and compares
// the best one with a scan of all.
func TestAgainstBruteForce(t *testing.T) {
	random.Rounds(t, 60, 300, func(t *testing.T, r *rand.Rand) {
		p, err := newPlanner(draw(r))
		if err != nil {
			t.Fatal(err)
		}
		meshes := p.enumerate()
		p.keep = len(meshes.found) + 1 // so that the ranking keeps all candidates
		found, err := p.rank(meshes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range found.all {
			p.checkAlone(t, found.all[i])
		}
		if want := p.settings(meshes.found); len(found.all) != want || found.evaluated != int64(want) {
			t.Fatalf("%d candidates were evaluated, %d are kept, and there are %d", found.evaluated, len(found.all), want)
		}
		p.keep, p.fastest = 1, 0 // so that the search skips micro-batches that are too large
		short, err := p.rank(meshes)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.best) > 1 && !slices.EqualFunc(short.best, found.best, alike) {
			t.Fatalf("the best of the meshes are %+v, of a search without others %+v", found.best, short.best)
		}
		checkOrder(t, found.all, p.fastest)
		if len(found.all) > 0 {
			if best, want := found.kept(p.keep, p.fastest)[0], scan(found.all); best != want {
				t.Fatalf("the best is %+v, of all %+v", best, want)
			}
		}
	})
}

// alike reports whether two candidates are equal. If both do not fit, their memory may differ
// by the rounding of a routed share of tokens.
func alike(a, b score) bool {
	return a == b || !a.fits && !b.fits && a.sizes == b.sizes && math.Abs(float64(a.total)/float64(b.total)-1) < 0.01
}

// checkAlone compares a candidate with its score from an evaluator with empty caches. It
// also checks the sum of its memory, and that distinct keeps the stage that needs the most.
func (p *planner) checkAlone(t *testing.T, c score) {
	t.Helper()
	e := newEvaluator(p)
	if err := e.setCandidate(&c); err != nil {
		t.Fatal(err)
	}
	if again := e.score(); again != c {
		t.Fatalf("%+v\nevaluated alone: %+v", c, again)
	}
	m := e.candidate().Memory
	if m.Total != m.Weights+m.Gradients+m.Optimizer+m.Activations+m.Buffers {
		t.Fatalf("%+v: the parts do not add up to the total", m)
	}
	if all := e.worstOfAll(); all != m {
		t.Fatalf("the worst of the distinct stages takes %+v, of all %+v", m, all)
	}
}

// checkOrder checks that no two candidates compare as equal, and that the result of
// compare changes its sign with the order of its arguments.
func checkOrder(t *testing.T, list []score, fastest int64) {
	t.Helper()
	for i := range list {
		for k := range list[:i] {
			a, b := &list[i], &list[k]
			if c := a.compare(b, fastest); c == 0 || c != -b.compare(a, fastest) {
				t.Fatalf("%+v and %+v compare as %d", a, b, c)
			}
		}
	}
}

// scan returns the best of all candidates: the preferred one of the best class within 1 %
// of the shortest time.
func scan(list []score) score {
	best := list[0]
	for _, c := range list {
		if c.class() < best.class() || best.class() == c.class() && (c.fits && c.step < best.step || !c.fits && c.total < best.total) {
			best = c
		}
	}
	shortest := best
	for _, c := range list {
		if c.class() == best.class() && (c.fits && float64(c.step) <= 1.01*float64(shortest.step) || !c.fits && c.total == shortest.total) && c.compareForm(&best) < 0 {
			best = c
		}
	}
	return best
}

// settings counts the candidates of meshes.
func (p *planner) settings(meshes []sizes) int {
	n := 0
	for _, s := range meshes {
		e := newEvaluator(p)
		e.setMesh(s)
		for _, x := range p.schedules(s[pipeAxis]) {
			for _, b := range p.microBatches(p.batch / s.batchParts()) {
				if x.chunks == 1 || p.batch/s.batchParts()/int64(b)%int64(s[pipeAxis]) == 0 {
					n += len(p.recomputationsToTry()) * len(e.stagesOfZeRO())
				}
			}
		}
	}
	return n
}

// worstOfAll returns the memory of the stage that takes most, without grouping alike
// stages. If several are equal, it returns the first.
func (e *evaluator) worstOfAll() Memory {
	var worst Memory
	for _, g := range e.stageList() {
		if g.Memory.Total > worst.Total {
			worst = g.Memory
		}
	}
	return worst
}

// TestEnumeration compares meshes and counts with all products of sizes.
func TestEnumeration(t *testing.T) {
	random.Rounds(t, 60, 600, func(t *testing.T, r *rand.Rand) {
		d := draw(r)
		d.Search.Pruned = true
		p, err := newPlanner(d)
		if err != nil {
			t.Fatal(err)
		}
		e := p.enumerate()
		listed := int64(0)
		for _, x := range e.pruned {
			listed += x.Count
			if x.Count != int64(len(x.Meshes)) || x.Message == "" {
				t.Errorf("%s counts %d meshes and lists %d", x.Code, x.Count, len(x.Meshes))
			}
		}
		if all := e.products(0, 1); all != listed+int64(len(e.found)) {
			t.Errorf("there are %d meshes, but %d were found and %d pruned", all, len(e.found), listed)
		}
		seen := map[sizes]bool{}
		for _, s := range e.found {
			if seen[s] {
				t.Errorf("mesh %v occurs twice", s)
			}
			seen[s] = true
		}
	})
}

// products counts the sizes of axis a and the axes after it that multiply to the number of
// devices. chosen is the product of the sizes of the other axes.
func (e *enumerator) products(a axis, chosen int) (n int64) {
	if a == numAxes {
		if chosen == e.cluster.Devices {
			return 1
		}
		return 0
	}
	for _, size := range e.domain[a] {
		n += e.products(a+1, chosen*size)
	}
	return n
}

// TestProperties checks what holds for every document.
func TestProperties(t *testing.T) {
	random.Rounds(t, 60, 600, func(t *testing.T, r *rand.Rand) {
		d := draw(r)
		report, err := Advise(d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range report.Candidates {
			checkCandidate(t, &report.Candidates[i])
		}
		if report.Best < 0 {
			return
		}
		bytes := int64(0)
		for _, g := range report.Stages {
			bytes += g.Memory.Weights * int64(d.Cluster.Devices/len(report.Stages))
		}
		if bytes < 2*report.Model.Parameters {
			t.Errorf("all devices have weights of %d bytes together, the model of %d", bytes, 2*report.Model.Parameters)
		}
		l, err := layout.New(report.Layout)
		if err != nil || l.Err() != nil {
			t.Fatalf("the layout has errors %v, %v", err, l.Err())
		}
		if in := report.Input; in.RowsPerStep != l.BatchSize() || in.ProcessRows*int64(in.Processes) < in.RowsPerStep {
			t.Errorf("%+v", in)
		}
	})
}

// checkCandidate checks that the parts of a candidate's time add up, that its bounds are in
// order, and that it has reasons.
func checkCandidate(t *testing.T, c *Candidate) {
	t.Helper()
	if c.Time == nil {
		t.Fatalf("%+v has no time: %v", c.Mesh, c.Reasons)
	}
	x, sum := c.Time, int64(0)
	for _, p := range x.parts() {
		sum += p.ns
	}
	if x.Step != sum-x.Hidden || x.Low > x.Step || x.Step > x.High || x.Hidden < 0 {
		t.Errorf("the parts of %+v do not add up", x)
	}
	if c.Memory.ActivationsLow > c.Memory.Activations || c.Memory.Activations > c.Memory.ActivationsHigh {
		t.Errorf("the activations of %+v are not an interval", c.Memory)
	}
	if c.Fits != (c.Memory.Free >= 0) || len(c.Reasons) == 0 {
		t.Errorf("%+v: fits %v, reasons %q", c.Mesh, c.Fits, c.Reasons)
	}
}

// TestMoreFSDP checks that a larger fsdp axis never needs more bytes of weights, and
// ZeRO never more states.
func TestMoreFSDP(t *testing.T) {
	random.Rounds(t, 60, 600, func(t *testing.T, r *rand.Rand) {
		p, err := newPlanner(draw(r))
		if err != nil {
			t.Fatal(err)
		}
		last := int64(-1)
		for n := 1; n <= 64; n *= 2 {
			w := p.model.blocks(sizes{1, 1, n, 1, 1, 1})
			var b block
			for k := range w {
				b.plus(&w[k], 1)
			}
			bytes := b.shared.Total() + b.experts.Total()
			if last >= 0 && bytes > last {
				t.Errorf("with fsdp %d a device holds %d bytes, with half of it %d", n, bytes, last)
			}
			last = bytes
		}
	})
}

// TestOverlap computes the time of 4 micro-batches in a pipeline by hand. For each,
// computation takes 10, communication that overlaps 4 and 3, and other communication 2.
// At the end, the gradients take 5, and the update 1.
func TestOverlap(t *testing.T) {
	w := work{micros: 4, idle: 3, overlapped: 7, longestOverlapped: 4, blocking: 2, endOverlapped: 5, update: 1}
	// (10 - 7) · 2/3 = 2 of the last micro-batch are left to hide the gradients.
	w.computing = 10
	if bubble, hidden := w.expected(); bubble != 3*12 || hidden != 4*7+2 {
		t.Errorf("expected: bubble %g, hidden %g", bubble, hidden)
	}
	// Communication takes longer than computing, so it covers computing.
	w.computing = 5
	if bubble, hidden := w.expected(); bubble != 3*9 || hidden != 4*5 {
		t.Errorf("expected: bubble %g, hidden %g", bubble, hidden)
	}
	w.computing = 8
	if got := w.least(); got != 4*8+4*2+3*(8+2)+1 {
		t.Errorf("at least %g", got)
	}
	w.computing = 1
	if got := w.least(); got != 4*4+4*2+3*(4+2)+1 {
		t.Errorf("at least %g", got)
	}
	w.computing = 12
	if got := w.most(); got != 7*(12+7+2)+5+1 {
		t.Errorf("at most %g", got)
	}
	w.computing, w.endOverlapped = 8, 100
	if got := w.least(); got != 100+4*2+3*(8+2)+1 {
		t.Errorf("at least %g", got)
	}
	w.computing, w.reading = 10, 19
	if bubble, hidden := w.expected(); bubble != 3*(19+2) || hidden != 4*7+8 {
		t.Errorf("with memory traffic: bubble %g, hidden %g", bubble, hidden)
	}
}

// TestEfficiency computes a time by hand for shares of the peak and of the bandwidth of the
// links. Each of 2 micro-batches takes 6 to compute at the peak. fsdp, which overlaps, has
// a latency of 1 and takes 3 for its bytes. tensor, which does not, has a latency of 1 and
// takes 2. At the end, data takes 8.
func TestEfficiency(t *testing.T) {
	p := &planner{efficiency: interval{0.4, 0.8}, linkEfficiency: interval{0.5, 1}, overlap: defaultOverlap}
	s := &spans{}
	s.each[fsdpAxis], s.each[tensorAxis], s.once[dataAxis] = span{1, 3}, span{1, 2}, span{0, 8}
	got := (&evaluator{planner: p, overlap: p.overlap}).compose(&work{micros: 2, computing: 6}, s)
	want := Time{
		Compute: 2 * 10, FSDP: 2 * 5, Tensor: 7, Data: 11, // 6/0.6; 1 + 3/0.75; 2 · (1 + 2/0.75); 8/0.75, all rounded
		Hidden: 13, // fsdp, and of data the backward pass: (10 - 5) · 2/3
		Step:   20 + 10 + 7 + 11 - 13,
		Low:    2*7.5 + 2*3,                 // fsdp and data are shorter than computing 6/0.8
		High:   2*(15+(1+3*2)+(1+2*2)) + 16, // 6/0.4, bytes at half the bandwidth
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestBarelySlower checks the reason of a candidate that is not as fast as the fastest,
// but that takes 0.2 % longer than the best one. Two decimals would say 1.00 times.
func TestBarelySlower(t *testing.T) {
	e := &evaluator{planner: &planner{fastest: 1000}}
	c, best := Candidate{Time: &Time{Step: 1012, Compute: 1012}}, Candidate{Time: &Time{Step: 1010, Compute: 1010}}
	if got, want := e.slower(&c, &best), "takes less than 1 % longer: 0.002 µs more of computation"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
