package view

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
)

// Gatherer implements source.Source. If the rows of the dataset below lie one after the other, a
// window is one copy. Otherwise its records are gathered one by one.
func (v *window) Gatherer(parts []source.Part) (source.Gatherer, error) {
	each, err := v.base.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	whole, number, err := v.adjacentBelow(parts, v.Length)
	if err != nil {
		return nil, errors.Join(err, each.Close())
	}
	if whole == nil {
		return each, nil
	}
	g := &windowGatherer{view: v, each: each.(*gatherer), whole: whole, number: number}
	g.pool.New = func() any { return new(windowing) }
	return g, nil
}

// adjacentBelow calls Adjacent of the facts of the one dataset below, with the fields there.
func (b *base) adjacentBelow(parts []source.Part, length int64) (source.Gatherer, func(record int64) int64, error) {
	adjacent := b.facts[0].Adjacent
	if adjacent == nil {
		return nil, nil, nil
	}
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Field = b.origins[parts[i].Field].fields[0]
	}
	return adjacent(parts, length)
}

// windowGatherer copies most windows as a whole: all but the few with rows that lie apart, such as at
// the end of one file and the beginning of the next.
type windowGatherer struct {
	view   *window
	each   *gatherer
	whole  source.Gatherer
	number func(record int64) int64 // of the window from a record on, in whole; -1 if its rows lie apart
	pool   sync.Pool                // holds *windowing
}

// windowing is the working memory of one gather.
type windowing struct {
	starts  []int64 // by window: its first record
	numbers []int64 // by window: its number in whole; -1 for padding, and if its rows lie apart
	jobs    [2][]source.Job
}

// Gather implements source.Gatherer. After an error, it gathers record by record, so that the error
// names a record of the dataset below.
func (g *windowGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.each.set, records, jobs, func(ctx context.Context) error {
		s := g.pool.Get().(*windowing)
		defer g.pool.Put(s)
		defer s.reset()
		whole, each := g.divide(s, records, jobs)
		if err := g.whole.Gather(ctx, draw, s.numbers, whole); err != nil {
			each = jobs
		}
		if len(each) == 0 {
			return nil
		}
		return g.each.Gather(ctx, draw, records, each)
	})
}

// divide sets the numbers of windows, and divides jobs into those for windows that are copied as a
// whole and those for the others.
func (g *windowGatherer) divide(s *windowing, records []int64, jobs []source.Job) (whole, each []source.Job) {
	g.view.firstRecords(source.Draw{}, &s.starts, records)
	apart := false
	for _, start := range s.starts {
		n := int64(-1)
		if start >= 0 {
			n = g.number(start)
			apart = apart || n < 0
		}
		s.numbers = append(s.numbers, n)
	}
	if !apart {
		return jobs, nil
	}
	for _, j := range jobs {
		for from, to := j.Rows[0], j.Rows[0]; from < j.Rows[1]; from = to {
			kind := s.apart(from)
			for to < j.Rows[1] && s.apart(to) == kind {
				to++
			}
			s.jobs[kind] = append(s.jobs[kind], j.Between(from, to))
		}
	}
	return s.jobs[0], s.jobs[1]
}

// apart returns 1 for a window with rows that lie apart, otherwise 0.
func (s *windowing) apart(i int) int {
	if s.starts[i] >= 0 && s.numbers[i] < 0 {
		return 1
	}
	return 0
}

// reset drops references to the caller's memory.
func (s *windowing) reset() {
	for i := range s.jobs {
		clear(s.jobs[i])
		s.jobs[i] = s.jobs[i][:0]
	}
	s.starts, s.numbers = s.starts[:0], s.numbers[:0]
}

// Ahead implements source.Gatherer.
func (g *windowGatherer) Ahead(draw source.Draw, records []int64) {
	var whole, each []int64
	for _, r := range g.view.existing(nil, records) {
		if n := g.number(g.view.start(r)); n >= 0 {
			whole = append(whole, n)
		} else {
			each = append(each, r)
		}
	}
	g.whole.Ahead(draw, whole)
	g.each.Ahead(draw, each)
}

// Close implements source.Gatherer.
func (g *windowGatherer) Close() error { return errors.Join(g.whole.Close(), g.each.Close()) }

// adjacent implements Adjacent of [source.Facts]. Records of a chain have neighbors in the dataset
// below only if all steps are slices.
func (c *chain) adjacent(parts []source.Part, length int64) (source.Gatherer, func(record int64) int64, error) {
	first := int64(0)
	for _, s := range c.steps {
		one, ok := s.(slice)
		if !ok {
			return nil, nil, nil
		}
		first += one.start
	}
	g, number, err := c.adjacentBelow(parts, length)
	if g == nil || err != nil {
		return nil, nil, err
	}
	return ofView{g, &c.base}, func(record int64) int64 { return number(first + record) }, nil
}

// ofView is a gatherer of the dataset below that ends with a view.
type ofView struct {
	source.Gatherer
	view *base
}

// Gather implements source.Gatherer.
func (g ofView) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	return g.view.call(ctx, func(ctx context.Context) error { return g.Gatherer.Gather(ctx, draw, records, jobs) })
}
