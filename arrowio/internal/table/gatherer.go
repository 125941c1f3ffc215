package table

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Gatherer implements source.Gatherer.
type Gatherer struct {
	table *Table
	gatherPlan
	rows    source.Gatherer         // for rows without a known address; nil if all have one
	pool    sync.Pool               // has *gatherState
	origins atomic.Pointer[origins] // nil until all files are in memory
}

// gatherPlan describes the columns that a gatherer copies from.
type gatherPlan struct {
	set     *block.Set
	columns []addressed // one for each of set.Fields
	direct  bool        // all columns are direct
}

// addressed is a column, and how the address of a row is computed.
type addressed struct {
	column *buffers.Column
	packed bool  // values are bits
	direct bool  // the address follows from the row's number, without reading offsets or validity
	stride int64 // from row to row, in bytes, or in bits if packed
}

// Gatherer returns a gatherer of parts of the table's rows.
func (t *Table) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := t.Calls.Enter(); err != nil {
		return nil, err
	}
	defer t.Calls.Leave()
	set, err := block.Compile(t.Schema, parts, t.form)
	if err != nil {
		return nil, err
	}
	columns, err := t.load(set.Fields)
	if err != nil {
		return nil, err
	}
	g := &Gatherer{table: t, gatherPlan: gatherPlan{set: set, direct: true}}
	for k, field := range set.Fields {
		a := t.addressed(field, columns[k])
		g.columns, g.direct = append(g.columns, a), g.direct && a.direct
	}
	if t.Store != nil || !g.direct {
		if g.rows, err = cut.Gatherer(newRowReader(t, set.Fields, columns), t.Schema, parts); err != nil {
			return nil, err
		}
		if t.countEncoded() == t.countFiles() {
			return g.rows, nil // no row has an address
		}
	}
	g.pool.New = func() any { return &gatherState{files: files{table: t}, gatherPlan: &g.gatherPlan} }
	return g, nil
}

// form describes how the rows of a field lie in memory.
func (t *Table) form(field int) block.Form {
	f := block.Form{Bits: t.Fields[field].Packed()}
	if t.Strides != nil && t.Strides[field] != nil {
		f.Strides = t.Strides[field][1:]
	}
	return f
}

// addressed describes the addresses of a field's rows. Columns with nulls, and
// columns with elements to skip at the front of the buffers, are not direct.
func (t *Table) addressed(field int, c *buffers.Column) addressed {
	f := t.Fields[field]
	a := addressed{column: c, packed: f.Packed(), direct: f.Direct() && c.Variants == nil, stride: f.RowBits()}
	for i := range c.Planes {
		if c.Planes[i].Valid != nil || c.Planes[i].Shift != nil {
			a.direct = false
		}
	}
	switch {
	case t.Strides != nil && t.Strides[field] != nil:
		a.stride = int64(t.Strides[field][0])
	case !a.packed:
		a.stride /= 8
	}
	return a
}

// Gather implements source.Gatherer.
func (g *Gatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	if err := g.table.Calls.Enter(); err != nil {
		return err
	}
	defer g.table.Calls.Leave()
	o := g.resident()
	if o == nil {
		return g.rows.Gather(ctx, draw, records, jobs)
	}
	if err := g.set.Check(len(records), jobs); err != nil {
		return err
	}
	zeros, err := g.table.checkRecords(records)
	if err != nil {
		return err
	}
	if err := status.Ended("arrowio", "the gather", ctx.Err()); err != nil {
		return err
	}
	s := g.pool.Get().(*gatherState)
	defer g.pool.Put(s)
	defer s.reset()
	s.records, s.origins, s.zeros = records, o, zeros
	s.divide(jobs)
	if len(s.others) > 0 {
		if err := g.rows.Gather(ctx, draw, records, s.others); err != nil {
			return err
		}
	}
	return s.gather()
}

// checkRecords returns an error if a record is out of range, and reports whether
// some are -1, which stands for a row of zeros.
func (t *Table) checkRecords(records []int64) (zeros bool, err error) {
	n := t.Index.Len()
	for _, r := range records {
		if r < -1 || r >= n {
			return false, t.outOfRange(r)
		}
		zeros = zeros || r < 0
	}
	return zeros, nil
}

func (t *Table) outOfRange(record int64) error {
	return status.Errorf(status.OutOfRange, "arrowio", "record %d of %d", record, t.Index.Len()).With("record", record)
}

// Ahead implements source.Gatherer.
func (g *Gatherer) Ahead(draw source.Draw, records []int64) {
	if g.rows != nil {
		g.rows.Ahead(draw, records)
	}
}

// Close implements source.Gatherer.
func (g *Gatherer) Close() error { return nil }

// gatherState is the working memory of one Gather that computes addresses.
type gatherState struct {
	files
	*gatherPlan
	work    block.Work
	records []int64
	origins origins
	zeros   bool         // some record is -1
	single  bool         // all records are in one record batch: entry is not needed
	located bool         // entry is computed
	entry   []uint32     // by record: the entry in Index of its record batch
	jobs    []source.Job // for direct columns
	others  []source.Job // for other columns
}

// reset drops references to the caller's memory, and the list of touched files.
func (s *gatherState) reset() {
	s.records, s.located = nil, false
	clear(s.jobs)
	clear(s.others)
	s.jobs, s.others = s.jobs[:0], s.others[:0]
	s.work.Reset()
	s.files.reset()
}

// divide separates the jobs of direct columns from the others.
func (s *gatherState) divide(jobs []source.Job) {
	if s.direct {
		s.jobs = append(s.jobs, jobs...)
		return
	}
	for _, j := range jobs {
		if s.columns[s.set.Group(j.Part)].direct {
			s.jobs = append(s.jobs, j)
		} else {
			s.others = append(s.others, j)
		}
	}
}

// gather does the jobs of direct columns.
func (s *gatherState) gather() error {
	_, s.single = s.table.Index.Single()
	s.touchAll()
	return s.guarded(func() error {
		for k := range s.set.Fields {
			if err := s.column(k); err != nil {
				return s.table.inFile(err)
			}
		}
		return nil
	})
}

// touchAll adds the files of all records to the files that guarded checks.
func (s *gatherState) touchAll() {
	t := s.table
	if t.Store == nil {
		return
	}
	if s.single || t.Files == nil {
		batch, _ := t.Index.Single()
		s.touch(batch)
		return
	}
	entries := uint32(t.Index.Entries())
	for _, p := range s.entries() {
		if p < entries {
			s.touch(t.Index.Batch(int(p)))
		}
	}
}

// entries returns the index entry of each record's batch. It computes them on
// the first call.
func (s *gatherState) entries() []uint32 {
	if !s.located {
		s.entry = slices.Grow(s.entry[:0], len(s.records))[:len(s.records)]
		s.table.Index.Find(s.records, s.entry)
		s.located = true
	}
	return s.entry
}

// column does the jobs of the k-th field, if its column is direct.
func (s *gatherState) column(k int) error {
	a := &s.columns[k]
	if !a.direct {
		return nil
	}
	jobs := s.set.Jobs(k, s.jobs, &s.work)
	if len(jobs) == 0 || s.copyElements(jobs, s.origins[k], uintptr(a.stride)) {
		return nil
	}
	s.setAddresses(s.origins[k], uintptr(a.stride))
	return s.set.Run(k, s.jobs, s.records, &s.work, s.zeros)
}
