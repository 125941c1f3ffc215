// Package mixture decides which source each draw of a mixture takes, for sources with weights.
//
// # Balanced draws
//
// Weights are integers that add up to [Total]. A binary tree divides the draws: a leaf stands for a
// source, and a node has the sum of the weights of its two children. If w is the weight of a node and
// a the weight of its left child, the first n draws of the node give the left child
//
//	L(n) = floor(n·a/w + 1/2)
//
// draws. So each child is within half a draw of its share. The error of a node counts in its
// descendants in proportion to their weights. The tree is Huffman's: the two lightest nodes are joined
// first. Then the weights of ancestors grow at least as fast as Fibonacci's numbers, and the sum of
// all errors stays below 1.68 draws, for any number of sources and after any number of draws.
//
// The number of draws that a source gets among the first n, and the draw that takes row j of a
// source, follow by walking the tree down or up. There is no table of draws.
//
// # Runs
//
// Balanced draws are periodic: two sources of equal weight alternate. If a batch is divided among
// devices, one device would get the rows of one source again and again. So the draws of a run, which
// are [Run] consecutive ones, are permuted by a key. Each source keeps the order of its rows. Up to
// the end of each run, a source is still within 1.68 draws of its share. Inside of a run it is within
// 1.68 + Run/4, because the run has about Run·w draws of a source with a share of w.
//
// # Stages
//
// The weights may change at a draw. There a new [Stage] begins, with a tree and runs of its own. Each
// source continues where it was, so no row is left out or repeated. The bounds hold in each stage,
// counted from its start. A new stage at the end changes no draw before its start.
//
// The construction has the frozen name [Name], because saved states depend on it.
package mixture

import (
	"math"
	"sort"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
	"github.com/meshfeed/meshfeed/core/status"
)

// Name is the name of the construction, which is never changed.
const Name = "mix.1"

// Total is the sum of the weights of all sources.
const Total = 1 << 32

// Run is the number of consecutive draws that are permuted among each other.
const Run = 64

// MaxSources is the most sources of a mixture.
const MaxSources = 1 << 16

// maxWeight keeps the sum of the weights finite.
const maxWeight = 1e300

// MaxDraws is the most draws of a mixture.
const MaxDraws = 1 << 60

// Stage gives the sources their weights from a draw on.
type Stage struct {
	Start   int64     // number of the first draw
	Weights []float64 // of each source, in any unit; 0 for a source without draws
}

// Draw is the source that a draw takes, and how many draws have taken the source before.
type Draw struct {
	Source int
	Number int64
}

// Mixture is a sequence of draws. It is immutable and safe for concurrent use.
type Mixture struct {
	seed    int64
	sources int
	stages  []stage
}

// stage is a Stage with its tree.
type stage struct {
	start  int64
	tree   tree
	before []int64 // by source: the draws in earlier stages
}

// New returns the mixture with these stages, the first of which begins at draw 0. The seed is a key for
// the order of the draws in runs. The error is InvalidArgument for weights that make no sense.
func New(seed int64, stages []Stage) (*Mixture, error) {
	if err := check(stages); err != nil {
		return nil, err
	}
	m := &Mixture{seed: seed, sources: len(stages[0].Weights)}
	for _, s := range stages {
		before, count := make([]int64, m.sources), m.counts(s.Start)
		for source := range before {
			before[source] = count(source)
		}
		m.stages = append(m.stages, stage{s.Start, newTree(integers(s.Weights)), before})
	}
	return m, nil
}

// check returns an error for stages that make no sense.
func check(stages []Stage) error {
	fail := func(hint, format string, args ...any) error {
		return status.Errorf(status.InvalidArgument, "mixture", format, args...).WithHint("%s", hint)
	}
	switch {
	case len(stages) == 0 || len(stages[0].Weights) == 0:
		return fail("give at least one", "a mixture has no sources")
	case len(stages[0].Weights) > MaxSources:
		return fail("concatenate datasets of one kind", "%d sources are more than %d", len(stages[0].Weights), MaxSources)
	case stages[0].Start != 0:
		return fail("begin with draw 0", "the first weights begin at draw %d", stages[0].Start)
	}
	for i, s := range stages {
		if i > 0 && s.Start <= stages[i-1].Start {
			return fail("list the changes in their order", "weights begin at draw %d, after weights that begin at draw %d", s.Start, stages[i-1].Start)
		}
		if s.Start > MaxDraws {
			return fail("begin earlier", "weights begin at draw %d, beyond %d", s.Start, int64(MaxDraws))
		}
		if n := len(stages[0].Weights); len(s.Weights) != n {
			return fail("give each source a weight, 0 for a source without rows", "the weights from draw %d on are %d, for %d sources", s.Start, len(s.Weights), n)
		}
		sum := 0.0
		for source, w := range s.Weights {
			if !(w >= 0 && w <= maxWeight) {
				return fail("give a number from 0 to 1e300", "source %d has the weight %v", source, w)
			}
			sum += w
		}
		if sum == 0 {
			return fail("give at least one source a weight above 0", "all weights from draw %d on are 0", s.Start)
		}
	}
	return nil
}

// integers returns integers in proportion to the weights that add up to Total. Each weight above 0
// becomes at least 1. The remainders are given to the weights with the largest fractions.
func integers(weights []float64) []uint64 {
	largest := 0.0
	for _, w := range weights {
		largest = max(largest, w)
	}
	sum := 0.0
	for _, w := range weights {
		sum += w / largest
	}
	out, order, left := make([]uint64, len(weights)), []int{}, int64(Total)
	fraction := make([]float64, len(weights))
	for i, w := range weights {
		if w == 0 {
			continue
		}
		exact := w / largest / sum * Total
		out[i] = max(1, uint64(exact))
		fraction[i] = exact - float64(out[i])
		left -= int64(out[i])
		order = append(order, i)
	}
	sort.SliceStable(order, func(i, j int) bool { return fraction[order[i]] > fraction[order[j]] })
	for k := 0; left > 0; k = (k + 1) % len(order) {
		out[order[k]]++
		left--
	}
	if left < 0 { // many tiny weights became 1
		heaviest := order[0]
		for _, i := range order {
			if out[i] > out[heaviest] {
				heaviest = i
			}
		}
		out[heaviest] -= uint64(-left)
	}
	return out
}

// Sources returns the number of sources.
func (m *Mixture) Sources() int { return m.sources }

// Draws writes the draws from number start on to out. A run takes about as long as Run draws, so ask
// for many consecutive draws at once.
func (m *Mixture) Draws(start int64, out []Draw) {
	for len(out) > 0 {
		i := m.stage(start)
		s, end := &m.stages[i], int64(math.MaxInt64)
		if i+1 < len(m.stages) {
			end = m.stages[i+1].start
		}
		at := start - s.start
		first := at - at%Run
		run := m.run(i, first)
		n := copy(out, run[at-first:min(Run, end-s.start-first)])
		out, start = out[n:], start+int64(n)
	}
}

// Count returns how many of the draws before number draw take a source.
func (m *Mixture) Count(source int, draw int64) int64 { return m.counts(draw)(source) }

// counts is Count for several sources.
func (m *Mixture) counts(draw int64) func(source int) int64 {
	if draw == 0 {
		return func(int) int64 { return 0 }
	}
	i := m.stage(draw - 1)
	s := &m.stages[i]
	at := draw - s.start
	first := at - at%Run
	run := m.run(i, first)
	return func(source int) int64 {
		n := s.before[source] + int64(s.tree.count(source, uint64(first)))
		for _, d := range run[:at-first] {
			if d.Source == source {
				n++
			}
		}
		return n
	}
}

// Position returns the draw that takes a source after number draws have taken it: the inverse of Draws.
// It returns false if there is no such draw, because a weight is 0.
func (m *Mixture) Position(source int, number int64) (draw int64, ok bool) {
	i := sort.Search(len(m.stages), func(i int) bool { return m.stages[i].before[source] > number }) - 1
	s := &m.stages[i]
	at, ok := s.tree.position(source, uint64(number-s.before[source]))
	if !ok {
		return 0, false
	}
	first := int64(at - at%Run)
	for k, d := range m.run(i, first) {
		if d == (Draw{source, number}) {
			return s.start + first + int64(k), true
		}
	}
	panic("mixture: a run does not have the draws of its tree")
}

// stage returns the number of the stage of a draw.
func (m *Mixture) stage(draw int64) int {
	return sort.Search(len(m.stages), func(i int) bool { return m.stages[i].start > draw }) - 1
}

// useRun keeps the keys of runs apart from the keys that package sampler makes.
const useRun = 64

// run returns a whole run of a stage, which begins at its draw number first.
func (m *Mixture) run(i int, first int64) (out [Run]Draw) {
	s := &m.stages[i]
	var order [Run]int64
	permutation.New(Run, useRun, uint64(m.seed), uint64(i), uint64(first/Run)).Fill(order[:], 0)
	var drawn [Run]Draw // in the order of the tree
	for k := range drawn {
		source, number := s.tree.at(uint64(first) + uint64(k))
		drawn[k] = Draw{source, s.before[source] + int64(number)}
	}
	var taken [Run]bool
	for k := range out {
		source := drawn[order[k]].Source
		for i := range drawn { // the first one of the source keeps its rows in order
			if !taken[i] && drawn[i].Source == source {
				taken[i], out[k] = true, drawn[i]
				break
			}
		}
	}
	return out
}
