package view

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
)

// endless is a dataset in all its epochs, one after the other: record j is at position j mod n of epoch
// j div n, if the dataset has n records. It has the schema and the facts of the dataset. Its readers and
// gatherers take any record from 0 on.
type endless struct {
	source.Source
	order sampler.Order
}

// Gatherer implements source.Source.
func (e endless) Gatherer(parts []source.Part) (source.Gatherer, error) {
	below, err := e.Source.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return &endlessGatherer{turns{order: e.order}, below}, nil
}

// Reader implements source.Source.
func (e endless) Reader(fields []int) (source.Reader, error) {
	below, err := e.Source.Reader(fields)
	if err != nil {
		return nil, err
	}
	return &endlessReader{turns{order: e.order}, below}, nil
}

// turns finds the records of epochs. It keeps the latest epoch.
type turns struct {
	order  sampler.Order
	latest atomic.Pointer[turn]
}

// turn is an epoch with its number.
type turn struct {
	number  int64
	records sampler.Epoch
}

// each calls use for each run of records in one epoch: the records from number from on, with their
// numbers in the dataset. It stops at an error.
func (t *turns) each(draw source.Draw, records []int64, use func(draw source.Draw, from int, list []int64) error) error {
	list, n := make([]int64, 0, len(records)), t.order.Len()
	for from := 0; from < len(records); {
		var now *turn
		for list = list[:0]; from+len(list) < len(records); {
			j := records[from+len(list)]
			if j >= 0 {
				if now == nil {
					now = t.turn(j / n)
				}
				if j/n != now.number {
					break
				}
				j = now.records.At(j % n)
			}
			list = append(list, j)
		}
		if now != nil {
			draw.Epoch = now.number
		}
		if err := use(draw, from, list); err != nil {
			return err
		}
		from += len(list)
	}
	return nil
}

// turn returns an epoch.
func (t *turns) turn(number int64) *turn {
	if latest := t.latest.Load(); latest != nil && latest.number == number {
		return latest
	}
	now := &turn{number, t.order.Epoch(number)}
	t.latest.Store(now)
	return now
}

type endlessGatherer struct {
	turns
	below source.Gatherer
}

// Gather implements source.Gatherer.
func (g *endlessGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	return g.each(draw, records, func(draw source.Draw, from int, list []int64) error {
		return g.below.Gather(ctx, draw, list, jobsOf(jobs, from, from+len(list)))
	})
}

// jobsOf returns the parts of jobs for the rows [from, to), which get numbers from 0 on.
func jobsOf(jobs []source.Job, from, to int) (some []source.Job) {
	for _, j := range jobs {
		start, stop := max(j.Rows[0], from), min(j.Rows[1], to)
		if start >= stop {
			continue
		}
		j = j.Between(start, stop)
		j.Rows = [2]int{start - from, stop - from}
		some = append(some, j)
	}
	return some
}

// Ahead implements source.Gatherer.
func (g *endlessGatherer) Ahead(draw source.Draw, records []int64) {
	g.ahead(draw, records, g.below.Ahead)
}

// ahead announces records.
func (t *turns) ahead(draw source.Draw, records []int64, announce func(draw source.Draw, records []int64)) {
	_ = t.each(draw, records, func(draw source.Draw, _ int, list []int64) error {
		announce(draw, list)
		return nil
	})
}

// Close implements source.Gatherer.
func (g *endlessGatherer) Close() error { return g.below.Close() }

type endlessReader struct {
	turns
	below source.Reader
}

// Read implements source.Reader. It changes the numbers of the records in the spans, which the reader
// of the mixture does not use again.
func (r *endlessReader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	records := make([]int64, len(spans))
	for i := range spans {
		records[i] = spans[i].Record
	}
	var runs []func(use func() error) error
	err := r.each(draw, records, func(draw source.Draw, from int, list []int64) error {
		some := spans[from : from+len(list)]
		for i, record := range list {
			some[i].Record = record
		}
		numbers := records[from : from+len(list)]
		runs = append(runs, func(use func() error) error {
			return named(func(use func() error) error { return r.below.Read(ctx, draw, some, use) }, use, func(j int64) (int64, bool) {
				i := slices.Index(numbers, j)
				return some[max(i, 0)].Record, i >= 0
			})
		})
		return nil
	})
	if err != nil {
		return err
	}
	for _, run := range runs {
		inner := use
		use = func() error { return run(inner) }
	}
	return use()
}

// Lengths implements source.Reader.
func (r *endlessReader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	return r.each(draw, records, func(draw source.Draw, from int, list []int64) error {
		return r.below.Lengths(ctx, draw, field, list, out[from:from+len(list)])
	})
}

// Ahead implements source.Reader.
func (r *endlessReader) Ahead(draw source.Draw, records []int64) {
	r.ahead(draw, records, r.below.Ahead)
}

// Close implements source.Reader.
func (r *endlessReader) Close() error { return r.below.Close() }
