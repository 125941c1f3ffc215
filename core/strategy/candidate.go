package strategy

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/meshfeed/meshfeed/core/pipeline"
	"github.com/meshfeed/meshfeed/core/transformer"
)

// score has the properties of a candidate that the ranking compares.
type score struct {
	setting
	fits  bool
	tight bool  // fits only if the compiler fuses kernels
	step  int64 // expected time in nanoseconds; 0 if it is not known
	high  int64 // time in the worst case
	total int64 // bytes per device
}

// compare ranks two candidates; a negative result ranks a before b. The criteria, the
// most important first:
//
//   - Candidates that fit precede those that do not.
//   - If both fit, the faster one comes first. Otherwise, the one with less memory does.
//   - A candidate that is not tight precedes a tight one.
//   - Fewer axes come first, then smaller axes in the order of preference.
//   - The simpler settings come first.
//
// No two candidates are equal. Times that differ by less than about 1 % count as
// equal, because estimates are less exact than that.
func (a *score) compare(b *score) int {
	if a.fits != b.fits {
		if a.fits {
			return -1
		}
		return 1
	}
	if a.fits {
		if c := cmp.Or(compareKnown(a.step, b.step), cmp.Compare(rough(a.step), rough(b.step))); c != 0 {
			return c
		}
	} else if c := cmp.Compare(a.total, b.total); c != 0 {
		return c
	}
	if a.tight != b.tight {
		if b.tight {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.sizes.used(), b.sizes.used()),
		slices.Compare(a.preference(), b.preference()),
		cmp.Compare(a.high, b.high),
		cmp.Compare(a.zero, b.zero),
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

// rough keeps the seven highest bits of a time, so that times within about 1 % compare
// as equal.
func rough(ns int64) int64 {
	drop := max(0, bits.Len64(uint64(ns))-7)
	return ns >> drop << drop
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

// preference lists the axis sizes; the axis that should stay smallest is first.
func (a *score) preference() []int {
	s := &a.sizes
	return []int{s[pipeAxis], s[contextAxis], s[expertAxis], s[tensorAxis], s[fsdpAxis], s[dataAxis]}
}

// recomputations lists the kinds of recomputation, the fastest first.
var recomputations = []transformer.Recomputation{transformer.NoRecomputation, transformer.SelectiveRecomputation, transformer.FullRecomputation}

// ranking has the scores of the candidates that a search evaluated.
type ranking struct {
	best      []score // the best candidate of every mesh
	others    []score // all candidates, if there are fewer meshes than the report may have candidates
	evaluated int64   // number of candidates
	meshes    int64   // number of meshes
}

// rank evaluates all candidates of the meshes.
func (p *planner) rank(e *enumerator) (*ranking, error) {
	r, v := &ranking{}, newEvaluator(p)
	few := len(e.found) < p.keep
	for _, s := range e.found {
		if !v.enter(s) {
			e.prune(TreeSpec, len(order), 1, s)
			continue
		}
		var best score
		n := 0
		err := v.each(few, func(c score) {
			if few {
				r.others = append(r.others, c)
			}
			if n == 0 || c.compare(&best) < 0 {
				best = c
			}
			n++
		})
		if err != nil {
			return nil, err
		}
		r.evaluated += int64(n)
		r.meshes++
		r.best = append(r.best, best)
	}
	return r, nil
}

// each evaluates the settings of the current mesh and passes their scores to visit. A
// larger micro-batch never takes less memory. So unless all is set, each stops after
// the first size for which no setting fits.
func (e *evaluator) each(all bool, visit func(score)) error {
	p := e.planner
	for _, micro := range p.microBatches(p.batch / e.sizes.replicas()) {
		e.divide(micro)
		if e.chunks > 1 && e.micros%e.sizes[pipeAxis] != 0 {
			continue
		}
		fits := false
		for _, r := range p.recomputations() {
			if err := e.keep(r); err != nil {
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
	c := score{setting: *e.setting, fits: m.Free >= 0, tight: e.planner.exceeds(&m), total: m.Total}
	if !c.fits {
		return c // the ranking compares the memory alone
	}
	if t, ok := e.time(&m); ok {
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
	if p.model.shape == nil && p.model.kept < 0 {
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

// recomputations lists the kinds of recomputation to try. With flash attention,
// selective recomputation saves next to nothing.
func (p *planner) recomputations() []transformer.Recomputation {
	switch r := cmp.Or(p.doc.Training.Recomputation, Auto); {
	case p.model.shape == nil:
		return recomputations[:1]
	case r != Auto:
		return []transformer.Recomputation{transformer.Recomputation(r)}
	case p.attention == transformer.FlashAttention:
		return []transformer.Recomputation{transformer.NoRecomputation, transformer.FullRecomputation}
	}
	return recomputations
}

// stagesOfZeRO lists the stages of ZeRO to try. Without replicas of the weights, all
// stages are equivalent.
func (e *evaluator) stagesOfZeRO() []int {
	asked := e.planner.doc.Search.ZeRO
	switch {
	case e.sizes.product(dataAxis, contextAxis, expertAxis) == 1:
		return []int{0}
	case len(asked) == 0:
		return []int{0, 1, 2}
	}
	return asked
}

// kept returns the candidates of the report: the best one of every mesh. If these are
// fewer than keep, the next best candidates of any mesh follow.
func (r *ranking) kept(keep int) []score {
	slices.SortFunc(r.best, func(a, b score) int { return a.compare(&b) })
	list := r.best[:min(keep, len(r.best))]
	if len(list) == keep || len(r.others) == 0 {
		return list
	}
	slices.SortFunc(r.others, func(a, b score) int { return a.compare(&b) })
	for i := range r.others {
		if len(list) == keep {
			break
		}
		if !slices.ContainsFunc(list, func(c score) bool { return c.setting == r.others[i].setting }) {
			list = append(list, r.others[i])
		}
	}
	slices.SortFunc(list, func(a, b score) int { return a.compare(&b) })
	return list
}

// resume makes a scored candidate the current one.
func (e *evaluator) resume(c *score) error {
	e.enter(c.sizes)
	*e.setting = c.setting
	return e.keep(c.recompute)
}

// candidate returns the current candidate.
func (e *evaluator) candidate() Candidate {
	c := Candidate{
		Mesh: e.sizes.mesh(), ZeRO: e.zero, Recomputation: string(e.recompute), MicroBatch: e.micro, MicroBatches: e.micros,
		Chunks: e.chunks, Memory: e.worst(),
	}
	if e.sizes[pipeAxis] > 1 {
		c.Schedule = string(cmp.Or(e.planner.schedule, pipeline.OneFOneB))
	}
	c.Fits = c.Memory.Free >= 0
	if t, ok := e.time(&c.Memory); ok {
		e.rates(&t)
		c.Time = &t
	}
	return c
}
