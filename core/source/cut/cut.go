// Package cut builds a [source.Gatherer] from a [source.Reader], and the reverse.
//
// The gatherer cuts whole rows into the blocks that a loader asks for, converts their
// elements and fills nulls. So a source that computes its rows needs no code for
// these. The reader gathers whole rows of fixed fields, for a source with a gatherer
// of its own.
package cut

import (
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Gatherer returns a gatherer of parts of the rows that r reads. Closing the
// gatherer closes r. For errors, see Gatherer in [source.Source].
func Gatherer(r source.Reader, schema source.Schema, parts []source.Part) (source.Gatherer, error) {
	set, err := block.Compile(schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &gatherer{reader: r, set: set}
	g.pool.New = func() any {
		s := &state{set: set}
		s.use = s.cut // made once, because a method value allocates
		return s
	}
	return g, nil
}

type gatherer struct {
	reader source.Reader
	set    *block.Set
	pool   sync.Pool // holds *state
}

// Gather implements source.Gatherer.
func (g *gatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	if err := g.set.Check(len(records), jobs); err != nil {
		return err
	}
	s := g.pool.Get().(*state)
	defer g.pool.Put(s)
	defer s.reset()
	s.records, s.jobs = records, jobs
	s.ask()
	return g.reader.Read(ctx, draw, s.spans, s.use)
}

// Ahead implements source.Gatherer.
func (g *gatherer) Ahead(draw source.Draw, records []int64) { g.reader.Ahead(draw, records) }

// Close implements source.Gatherer.
func (g *gatherer) Close() error { return g.reader.Close() }

// state is the working memory of one gather.
type state struct {
	set     *block.Set
	records []int64
	jobs    []source.Job
	spans   []source.Span // field by field, without padding
	use     func() error  // cut
	work    block.Work
}

// reset drops the references to memory of the caller and of the reader.
func (s *state) reset() {
	clear(s.spans)
	s.records, s.jobs, s.spans = nil, nil, s.spans[:0]
	s.work.Reset()
}

// ask lists the rows that the jobs need.
func (s *state) ask() {
	for k, field := range s.set.Fields {
		from, to := s.set.Rows(k, s.jobs)
		n := len(s.spans)
		s.spans = slices.Grow(s.spans, to-from)[:n+to-from]
		for _, r := range s.records[from:to] {
			if r != -1 { // not padding
				s.spans[n].Field, s.spans[n].Record = field, r // the rest of a span was cleared
				n++
			}
		}
		s.spans = s.spans[:n]
	}
}

// cut does all jobs. The reader calls it when the spans have their rows.
func (s *state) cut() error {
	spans := s.spans
	for k := range s.set.Fields {
		from, to := s.set.Rows(k, s.jobs)
		n, err := s.field(k, from, to, spans)
		if err != nil {
			return err
		}
		spans = spans[n:]
	}
	return nil
}

// field does the jobs of the k-th field. The list of spans begins with the field's
// rows [from, to), without padding. field returns the number of these spans.
func (s *state) field(k, from, to int, spans []source.Span) (n int, err error) {
	rows, f := s.work.Addresses(len(s.records)), s.set.Field(k)
	clear(rows)
	for i := from; i < to; i++ {
		if s.records[i] != -1 {
			if err := f.CheckRow(&spans[n]); err != nil {
				return 0, err
			}
			rows[i] = block.Address(spans[n].Row)
			n++
		}
	}
	if err := s.set.Run(k, s.jobs, s.records, &s.work, true); err != nil {
		return 0, err
	}
	at := 0
	for i := from; i < to; i++ {
		if s.records[i] == -1 {
			continue
		}
		if span := &spans[at]; span.Row == nil || span.Nulls != nil {
			if err := s.set.Fill(k, s.jobs, s.records, i, span.Nulls); err != nil {
				return 0, err
			}
		}
		at++
	}
	return n, nil
}
