package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Gatherer implements source.Source. The gatherers below write the blocks of rows that they
// have in place, and columns that are joined into memory of the view, which are then
// interleaved. Blocks of computed rows are cut from the rows of the view's reader.
func (b *base) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := b.calls.Enter(); err != nil {
		return nil, err
	}
	defer b.calls.Leave()
	set, err := block.Compile(b.schema, parts, nil)
	if err != nil {
		return nil, err // with the name of the view's field
	}
	g := &gatherer{view: b, set: set, parts: make([]gathered, len(parts))}
	g.pool.New = func() any { return &gathering{shares: make([]share, len(b.below))} }
	var below, computed []source.Part
	var fields []int // that are computed
	for i, p := range parts {
		if b.origins[p.Field].compute != nil {
			g.parts[i] = gathered{computed: true, first: len(computed)}
			computed, fields = append(computed, p), append(fields, p.Field)
			continue
		}
		g.parts[i].first = len(below)
		below = g.add(&g.parts[i], p, below)
	}
	for _, s := range b.below {
		one, err := s.Gatherer(below)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.below = append(g.below, one)
	}
	if len(computed) == 0 {
		return g, nil
	}
	read := b.Reader
	if b.rows != nil {
		read = b.rows
	}
	r, err := read(fields)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if g.computed, err = cut.Gatherer(r, b.schema, computed); err != nil {
		return nil, errors.Join(err, r.Close(), g.Close())
	}
	return g, nil
}

// gatherer renumbers records, and divides records and jobs among the gatherers of the datasets.
type gatherer struct {
	view     *base
	set      *block.Set
	parts    []gathered
	cuts     []timeRange       // ranges within windows, each once
	below    []source.Gatherer // by dataset
	computed source.Gatherer   // nil if no part needs it
	pool     sync.Pool         // holds *gathering
}

// gathered is a part of the view.
type gathered struct {
	computed bool
	first    int // the first part below, or the number of the computed part
	columns  int // the number of parts below
	width    int // bytes of one column's box; 0 if there is nothing to interleave
	cut      int // in a window: an index in gatherer.cuts
}

// timeRange is the part of every window that some parts take.
type timeRange struct {
	ranges [][2]int
	rows   int // in all ranges
}

// add appends the parts below of a part.
func (g *gatherer) add(to *gathered, p source.Part, below []source.Part) []source.Part {
	from := g.view.origins[p.Field]
	column := p
	to.columns, column.Field = 1, from.fields[0]
	if !from.joined {
		return append(below, column)
	}
	column.Boxes = [][][2]int{p.Boxes[0][1:]}
	ranges := make([][2]int, len(p.Boxes))
	for k, box := range p.Boxes {
		ranges[k] = box[0]
	}
	if g.view.length > 0 {
		to.cut = g.cutOf(ranges)
		return append(below, column)
	}
	to.columns, to.width = 0, column.Bytes(cmp.Or(p.To, g.view.schema.Fields[p.Field].Type))
	for _, r := range ranges {
		for _, column.Field = range from.fields[r[0]:r[1]] {
			below = append(below, column)
			to.columns++
		}
	}
	return below
}

// cutOf returns the number of some ranges, which it adds unless an earlier part has the same.
func (g *gatherer) cutOf(ranges [][2]int) int {
	i := slices.IndexFunc(g.cuts, func(c timeRange) bool { return slices.Equal(c.ranges, ranges) })
	if i < 0 {
		i = len(g.cuts)
		c := timeRange{ranges: ranges}
		for _, r := range ranges {
			c.rows += r[1] - r[0]
		}
		g.cuts = append(g.cuts, c)
	}
	return i
}

// list appends the records of a window, or padding.
func (c *timeRange) list(records []int64, start int64) []int64 {
	for _, r := range c.ranges {
		n := len(records)
		records = slices.Grow(records, r[1]-r[0])[:n+r[1]-r[0]]
		for t := range records[n:] {
			records[n+t] = -1
			if start >= 0 {
				records[n+t] = start + int64(r[0]+t)
			}
		}
	}
	return records
}

// gathering is the working memory of one gather.
type gathering struct {
	located  []int64 // by record of the gather: the record below
	records  []int64 // records of windows
	jobs     []source.Job
	computed []source.Job
	joins    []join
	scratch  memory
	shares   []share // by dataset
	owner    []int   // by record: its dataset
	place    []int   // by record: its index in the dataset's list
}

// join is a job for joined columns, which lie one after the other in from.
type join struct {
	to, from             []byte
	rows, columns, width int
}

// share is the part of a gather that one dataset does.
type share struct {
	records []int64
	jobs    []source.Job
}

// reset drops references to the caller's memory.
func (s *gathering) reset() {
	for i := range s.shares {
		share := &s.shares[i]
		clear(share.jobs)
		share.records, share.jobs = share.records[:0], share.jobs[:0]
	}
	clear(s.jobs)
	clear(s.computed)
	clear(s.joins)
	s.scratch.reset()
	s.located, s.records, s.jobs, s.computed, s.joins = s.located[:0], s.records[:0], s.jobs[:0], s.computed[:0], s.joins[:0]
	s.owner, s.place = s.owner[:0], s.place[:0]
}

// Gather implements source.Gatherer.
func (g *gatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.set, records, jobs, func(ctx context.Context) error {
		s := g.pool.Get().(*gathering)
		defer g.pool.Put(s)
		defer s.reset()
		below := records
		if g.view.renumber != nil {
			g.view.renumber(draw, &s.located, records)
			below = s.located
		}
		if g.view.length > 0 {
			below = g.windows(s, below, jobs)
		} else {
			for _, j := range jobs {
				g.job(s, j)
			}
		}
		if err := g.gatherBelow(ctx, draw, s, below); err != nil {
			return err
		}
		for _, j := range s.joins {
			interleave(j.to, j.from, j.rows, j.columns, j.width)
		}
		if len(s.computed) == 0 {
			return nil
		}
		return g.computed.Gather(ctx, draw, records, s.computed)
	})
}

// windows lists the records of windows, and adds the jobs for them. The gatherer below then writes
// the rows of a window one after the other, which is their order in the window.
func (g *gatherer) windows(s *gathering, starts []int64, jobs []source.Job) []int64 {
	for i := range g.cuts {
		from, to := len(starts), 0
		for _, j := range jobs {
			if g.parts[j.Part].cut == i {
				from, to = min(from, j.Rows[0]), max(to, j.Rows[1])
			}
		}
		first, c := len(s.records), &g.cuts[i]
		for _, j := range jobs {
			if g.parts[j.Part].cut == i {
				j.Rows = [2]int{first + (j.Rows[0]-from)*c.rows, first + (j.Rows[1]-from)*c.rows}
				g.job(s, j)
			}
		}
		for _, start := range starts[min(from, to):to] {
			s.records = c.list(s.records, start)
		}
	}
	return s.records
}

// job adds the jobs below of a job.
func (g *gatherer) job(s *gathering, j source.Job) {
	p := &g.parts[j.Part]
	j.Part = p.first
	switch {
	case p.computed:
		s.computed = append(s.computed, j)
	case p.width == 0 && p.columns > 0:
		s.jobs = append(s.jobs, j)
	case p.columns > 0:
		scratch, n := s.scratch.bytes(len(j.Dst)), (j.Rows[1]-j.Rows[0])*p.width
		s.joins = append(s.joins, join{j.Dst, scratch, j.Rows[1] - j.Rows[0], p.columns, p.width})
		for range p.columns {
			s.jobs = append(s.jobs, source.Job{Part: j.Part, Rows: j.Rows, Dst: scratch[:n:n]})
			j.Part, scratch = j.Part+1, scratch[n:]
		}
	}
}

// gatherBelow does the jobs of all datasets.
func (g *gatherer) gatherBelow(ctx context.Context, draw source.Draw, s *gathering, records []int64) error {
	if len(g.below) == 1 {
		return g.below[0].Gather(ctx, draw, records, s.jobs)
	}
	s.divide(g.view, records)
	for _, j := range s.jobs {
		s.share(j)
	}
	for i := range s.shares {
		if share := &s.shares[i]; len(share.jobs) > 0 {
			if err := g.below[i].Gather(ctx, draw, share.records, share.jobs); err != nil {
				return err
			}
		}
	}
	return ended(ctx)
}

// divide adds each record to the list of its dataset. Padding joins the record before
// it.
func (s *gathering) divide(v *base, records []int64) {
	owner := 0
	for _, r := range records {
		if r >= 0 {
			if r < v.starts[owner] || r >= v.starts[owner+1] {
				owner, _ = v.find(r)
			}
			r -= v.starts[owner]
		}
		share := &s.shares[owner]
		s.owner, s.place = append(s.owner, owner), append(s.place, len(share.records))
		share.records = append(share.records, r)
	}
}

// share divides a job into one for each run of records of one dataset.
func (s *gathering) share(j source.Job) {
	for from := j.Rows[0]; from < j.Rows[1]; {
		owner, to := s.owner[from], from+1
		for to < j.Rows[1] && s.owner[to] == owner {
			to++
		}
		part, at := j.Between(from, to), s.place[from]
		part.Rows = [2]int{at, at + to - from}
		s.shares[owner].jobs = append(s.shares[owner].jobs, part)
		from = to
	}
}

// Ahead implements source.Gatherer.
func (g *gatherer) Ahead(draw source.Draw, records []int64) {
	g.view.ahead(draw, records, func(i int, list []int64) {
		if g.view.length == 0 {
			g.below[i].Ahead(draw, list)
			return
		}
		var all []int64
		for _, start := range list {
			for c := range g.cuts {
				all = g.cuts[c].list(all, start)
			}
		}
		g.below[i].Ahead(draw, all)
	})
	if g.computed != nil {
		g.computed.Ahead(draw, records)
	}
}

// Close implements source.Gatherer.
func (g *gatherer) Close() error {
	err := closeAll(g.below)
	if g.computed != nil {
		err = errors.Join(err, g.computed.Close())
	}
	return err
}

// closeAll closes gatherers or readers.
func closeAll[T interface{ Close() error }](list []T) (err error) {
	for _, g := range list {
		err = errors.Join(err, g.Close())
	}
	return err
}
