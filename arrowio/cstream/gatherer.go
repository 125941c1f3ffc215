package cstream

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// gatherer copies rows of arrays.
type gatherer struct {
	source *arrays
	fields []int // that have parts, ascending
	parts  []*block.Program
	field  []int // of each part
	spare  sync.Pool
}

// Gatherer implements source.Source.
func (s *arrays) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := s.gate.enter(); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	g := &gatherer{source: s}
	g.spare.New = func() any { return &scratch{} }
	for _, p := range parts {
		if p.Field < 0 || p.Field >= len(s.columns) {
			return nil, refuse("a part asks for field %d, but there are %d", p.Field, len(s.columns))
		}
		compiled, err := block.CompileStrided(s.schema.Fields[p.Field], s.columns[p.Field].strides, p)
		if err != nil {
			return nil, err
		}
		g.parts, g.field = append(g.parts, compiled), append(g.field, p.Field)
		g.fields = append(g.fields, p.Field)
	}
	slices.Sort(g.fields)
	g.fields = slices.Compact(g.fields)
	return g, nil
}

// scratch is the working memory of one gather.
type scratch struct {
	rows []uintptr
	jobs []gather.Job
}

// Gather implements source.Gatherer.
func (g *gatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	if err := g.source.gate.enter(); err != nil {
		return err
	}
	defer g.source.gate.leave()
	if err := g.check(records, jobs); err != nil {
		return err
	}
	bytes := 0
	for i := range jobs {
		bytes += len(jobs[i].Dst)
	}
	o := gather.Options{Streaming: gather.OutgrowsCache(4 * bytes)}
	s := g.spare.Get().(*scratch)
	defer g.spare.Put(s)
	for _, field := range g.fields {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := g.gather(s, field, records, jobs, o); err != nil {
			return err
		}
	}
	clear(s.jobs[:cap(s.jobs)]) // keeps no Dst
	return nil
}

// check refuses records that do not exist and jobs that do not fit.
func (g *gatherer) check(records []int64, jobs []source.Job) error {
	if err := g.checkRecords(records); err != nil {
		return err
	}
	for i, j := range jobs {
		if j.Part < 0 || j.Part >= len(g.parts) {
			return refuse("job %d is for part %d of %d", i, j.Part, len(g.parts))
		}
		n := j.Rows[1] - j.Rows[0]
		if j.Rows[0] < 0 || n < 0 || j.Rows[1] > len(records) {
			return refuse("job %d is for rows %v of %d records", i, j.Rows, len(records))
		}
		if width := g.parts[j.Part].Bytes(); n*width != len(j.Dst) {
			return refuse("job %d has %d bytes for %d rows of %d bytes", i, len(j.Dst), n, width)
		}
	}
	return nil
}

func (g *gatherer) checkRecords(records []int64) error {
	n := g.source.records
	if table.Within(records, n) {
		return nil
	}
	for _, r := range records {
		if r < -1 || r >= n {
			return status.Errorf(status.OutOfRange, "arrays", "record %d is not one of the %d", r, n).With("record", r)
		}
	}
	return nil
}

// gather does the jobs of one field.
func (g *gatherer) gather(s *scratch, field int, records []int64, jobs []source.Job, o gather.Options) error {
	s.jobs = s.jobs[:0]
	for _, j := range jobs {
		if g.field[j.Part] == field {
			s.jobs = append(s.jobs, gather.Job{Program: g.parts[j.Part].Program, Rows: j.Rows, Dst: j.Dst})
		}
	}
	if len(s.jobs) == 0 {
		return nil
	}
	o.Whole = s.locate(&g.source.columns[field], records)
	err := gather.Run(s.rows, s.jobs, o)
	var overflow *gather.RangeError
	if errors.As(err, &overflow) {
		return overflows(g.source.schema.Fields[field].Name, records[overflow.Row], overflow)
	}
	return err
}

func overflows(field string, record int64, e *gather.RangeError) error {
	return status.Errorf(status.OutOfRange, "arrays", "field %q: record %d holds %d, which %s cannot", field, record, e.Value, e.To).
		WithHint("deliver the field in its own type (in JAX: jax.config.update(\"jax_enable_x64\", True)), or store smaller values").
		With("field", field).With("record", record)
}

// locate finds the rows of the records; address 0 stands for a row of zeros. It
// is true if there is none.
func (s *scratch) locate(c *column, records []int64) bool {
	rows := slices.Grow(s.rows[:0], len(records))[:len(records)]
	s.rows = rows
	base, stride, signs := c.base, uintptr(c.stride), int64(0)
	for i, r := range records {
		rows[i] = base + uintptr(r)*stride
		signs |= r
	}
	if signs >= 0 {
		return true
	}
	for i, r := range records {
		if r < 0 {
			rows[i] = 0
		}
	}
	return false
}

// Ahead implements source.Gatherer: everything is in memory.
func (g *gatherer) Ahead([]int64) {}

// Close implements source.Gatherer.
func (g *gatherer) Close() error { return nil }
