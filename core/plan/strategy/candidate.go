package strategy

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// score has the properties of a candidate that the ranking compares.
type score struct {
	setting
	fits  bool
	tight bool  // fits only if the compiler fuses kernels
	step  int64 // expected time in nanoseconds; 0 if it is not known
	high  int64 // nanoseconds in the worst case
	total int64 // bytes per device
}

// compare ranks two candidates; a negative result ranks a before b. The criteria, the
// most important first:
//
//   - Candidates that fit precede those that do not, and those that fit without fused
//     kernels, as in JAX, precede tight ones.
//   - If both fit, a known time precedes an unknown one, and then the shorter time comes
//     first. If none fits, the one with less memory does.
//   - Fewer axes come first, then smaller axes in the order of preference.
//   - The shorter time in the worst case comes first.
//   - The smaller stage of ZeRO comes first, then fewer chunks, then the faster
//     recomputation.
//   - Fewer micro-batches come first, or smaller ones if none fits.
//
// No two candidates are equal. Times within 1 % of the fastest one count as equal,
// because estimates are less exact.
func (a *score) compare(b *score, fastest int64) int {
	if c := cmp.Compare(a.class(), b.class()); c != 0 {
		return c
	}
	c := cmp.Compare(a.total, b.total)
	if a.fits {
		if c = compareKnown(a.step, b.step); c == 0 && !(near(a.step, fastest) && near(b.step, fastest)) {
			c = cmp.Compare(a.step, b.step)
		}
	}
	return cmp.Or(c, a.compareForm(b))
}

// class is 0 for a candidate that fits without fused kernels, 1 for one that fits with
// them, and 2 for one that does not fit.
func (a *score) class() int {
	switch {
	case !a.fits:
		return 2
	case a.tight:
		return 1
	}
	return 0
}

// near reports whether a time is within 1 % of a shorter one.
func near(step, fastest int64) bool { return step-fastest <= fastest/100 }

// compareForm ranks two candidates of equal time or memory.
func (a *score) compareForm(b *score) int {
	return cmp.Or(
		cmp.Compare(a.sizes.used(), b.sizes.used()),
		slices.Compare(a.preference(), b.preference()),
		cmp.Compare(a.high, b.high),
		cmp.Compare(a.zero, b.zero),
		cmp.Compare(a.chunks, b.chunks),
		cmp.Compare(slices.Index(recomputations, a.recompute), slices.Index(recomputations, b.recompute)),
		a.compareMicro(b),
	)
}

// compareMicro prefers few micro-batches, which keep matrix products large. If they do
// not fit, it prefers small ones: all candidates up to a size may need equal memory.
func (a *score) compareMicro(b *score) int {
	if a.fits {
		return cmp.Compare(a.micros, b.micros)
	}
	return cmp.Compare(a.micro, b.micro)
}

// compareKnown ranks a known time before an unknown one, which is 0.
func compareKnown(a, b int64) int {
	switch {
	case a > 0 && b == 0:
		return -1
	case a == 0 && b > 0:
		return 1
	}
	return 0
}

// preference lists the axis sizes in the order of their comparison in the ranking. The
// axis that should stay smallest is first.
func (a *score) preference() []int {
	s := &a.sizes
	return []int{s[pipeAxis], s[contextAxis], s[expertAxis], s[tensorAxis], s[fsdpAxis], s[dataAxis]}
}

// recomputations lists the kinds of recomputation, the fastest first.
var recomputations = []transformer.Recomputation{transformer.NoRecomputation, transformer.SelectiveRecomputation, transformer.DotsRecomputation, transformer.FullRecomputation}

// ranking has the scores of the candidates that a search evaluated.
type ranking struct {
	best      []score // the best candidate of every mesh
	all       []score // all candidates, if there are fewer meshes than the report may have candidates
	evaluated int64   // number of candidates
	meshes    int64   // number of meshes
}

// rank evaluates all candidates of the meshes.
func (p *planner) rank(e *enumerator) (*ranking, error) {
	r, v := &ranking{}, newEvaluator(p)
	few := len(e.found) < p.keep
	var list []score      // all candidates of a mesh
	var leading [][]score // leading candidates of every mesh, the result of lead
	for _, s := range e.found {
		if !v.setMesh(s) {
			e.prune(TreeSpec, len(order), 1, s)
			continue
		}
		list = list[:0]
		if err := v.each(few, func(c score) { list = append(list, c) }); err != nil {
			return nil, err
		}
		if few {
			r.all = append(r.all, list...)
		}
		r.evaluated += int64(len(list))
		r.meshes++
		leading = append(leading, lead(list))
	}
	class := 2
	for _, list := range leading {
		switch first := &list[0]; {
		case first.step == 0 || first.class() > class:
		case first.class() < class || first.step < p.fastest:
			class, p.fastest = first.class(), first.step
		}
	}
	for _, list := range leading {
		r.best = append(r.best, best(list, p.fastest))
	}
	return r, nil
}

// lead returns the fastest candidate of a mesh that fits, and after it the others that fit
// within 1 % of its time. If none fits, it returns the one with the least memory.
func lead(list []score) []score {
	first := slices.MinFunc(list, func(a, b score) int { return a.compare(&b, 0) })
	leading := []score{first}
	for _, c := range list {
		if c.fits && c != first && c.class() == first.class() && near(c.step, first.step) {
			leading = append(leading, c)
		}
	}
	return leading
}

// best returns the preferred one of the leading candidates of a mesh. Those within 1 % of
// the fastest of all meshes precede the others.
func best(leading []score, fastest int64) score {
	return slices.MinFunc(leading, func(a, b score) int {
		if x, y := near(a.step, fastest), near(b.step, fastest); x != y {
			return cmp.Compare(a.step, b.step)
		}
		return a.compareForm(&b)
	})
}

// each evaluates the settings of the current mesh and passes their scores to visit. all
// includes settings with micro-batches that are too large to fit.
func (e *evaluator) each(all bool, visit func(score)) error {
	for _, x := range e.planner.schedules(e.sizes[pipeAxis]) {
		e.setSchedule(x)
		if err := e.eachSize(all, visit); err != nil {
			return err
		}
	}
	return nil
}

// eachSize evaluates the settings with the current schedule. A larger micro-batch takes no
// less memory, except that the routed share of its tokens is rounded up less often. So
// eachSize stops after the first size without a setting that fits, unless all is set.
func (e *evaluator) eachSize(all bool, visit func(score)) error {
	p := e.planner
	for _, micro := range p.microBatches(p.batch / e.sizes.batchParts()) {
		e.setMicroBatch(micro)
		if e.chunks > 1 && e.micros%e.sizes[pipeAxis] != 0 {
			continue
		}
		fits := false
		for _, r := range p.recomputationsToTry() {
			if err := e.setRecomputation(r); err != nil {
				if p.doc.Training.MicroBatch > 0 || micro == 1 {
					return err
				}
				return nil // larger micro-batches are too large to count
			}
			for _, zero := range e.stagesOfZeRO() {
				e.zero = zero
				c := e.score()
				visit(c)
				fits = fits || c.fits
			}
		}
		if !fits && !all {
			break
		}
	}
	return nil
}

// score evaluates the current candidate.
func (e *evaluator) score() score {
	m := e.worst()
	c := score{setting: e.setting, fits: m.Free >= 0, tight: e.planner.exceeds(&m), total: m.Total}
	if !c.fits {
		return c // the ranking compares the memory alone
	}
	if t, ok := e.time(); ok {
		c.step, c.high = t.Step, t.High
	}
	return c
}

// microBatches lists the sizes of micro-batches to try for the examples of a replica:
// the powers of two that divide them, and each power times their odd factor.
func (p *planner) microBatches(examples int64) []int {
	if n := p.doc.Training.MicroBatch; n > 0 {
		return []int{n}
	}
	if p.model.shape == nil && p.model.activationBytes < 0 {
		return []int{int(examples)}
	}
	odd := examples
	for odd%2 == 0 {
		odd /= 2
	}
	var list []int
	for n := int64(1); examples%n == 0; n *= 2 {
		list = append(list, int(n))
		if odd > 1 {
			list = append(list, int(n*odd))
		}
	}
	slices.Sort(list)
	return list
}

// recomputationsToTry lists the kinds of recomputation that JAX has. Selective
// recomputation of Megatron takes as long as dots, and keeps more.
func (p *planner) recomputationsToTry() []transformer.Recomputation {
	switch r := cmp.Or(p.doc.Training.Recomputation, Auto); {
	case p.model.shape == nil:
		return recomputations[:1]
	case r != Auto:
		return []transformer.Recomputation{transformer.Recomputation(r)}
	}
	return []transformer.Recomputation{transformer.NoRecomputation, transformer.DotsRecomputation, transformer.FullRecomputation}
}

// stagesOfZeRO lists the stages of ZeRO to try. Without replicas of the weights, all
// stages are equivalent.
func (e *evaluator) stagesOfZeRO() []int {
	asked := e.planner.doc.Search.ZeRO
	switch {
	case e.sizes.replicas() == 1:
		return []int{0}
	case len(asked) == 0:
		return []int{0, 1, 2}
	}
	return asked
}

// kept returns the candidates of the report: the best one of every mesh. If these are
// fewer than keep, the next best candidates of any mesh follow.
func (r *ranking) kept(keep int, fastest int64) []score {
	compare := func(a, b score) int { return a.compare(&b, fastest) }
	slices.SortFunc(r.best, compare)
	list := r.best[:min(keep, len(r.best))]
	slices.SortFunc(r.all, compare)
	for i := range r.all {
		if len(list) == keep {
			break
		}
		if !slices.ContainsFunc(list, func(c score) bool { return c.setting == r.all[i].setting }) {
			list = append(list, r.all[i])
		}
	}
	slices.SortFunc(list, compare)
	return list
}

// setCandidate makes a scored candidate the current one.
func (e *evaluator) setCandidate(c *score) error {
	e.setMesh(c.sizes)
	e.setSchedule(c.schedule)
	e.setting = c.setting
	return e.setRecomputation(c.recompute)
}

// candidate returns the current candidate.
func (e *evaluator) candidate() Candidate {
	c := Candidate{
		Mesh: e.sizes.mesh(), ZeRO: e.zero, Recomputation: string(e.recompute), MicroBatch: e.micro, MicroBatches: e.micros,
		Chunks: e.chunks, Memory: e.worst(),
	}
	if e.sizes[pipeAxis] > 1 {
		c.Schedule = string(e.kind)
	}
	c.Fits = c.Memory.Free >= 0
	if t, ok := e.time(); ok {
		e.setRates(&t)
		c.Time = &t
	}
	return c
}
