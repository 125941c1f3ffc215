package table

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Gatherer makes a gatherer of parts of the table's rows.
func (t *Table) Gatherer(parts []source.Part) (*Gatherer, error) {
	if err := t.Gate.Enter(); err != nil {
		return nil, err
	}
	defer t.Gate.Leave()
	g := &Gatherer{table: t, programs: make([]*block.Program, len(parts)), reader: make([]int, len(parts))}
	for i, p := range parts {
		if p.Field < 0 || p.Field >= len(t.Fields) {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "part %d takes field %d of %d", i, p.Field, len(t.Fields))
		}
		f := t.Fields[p.Field]
		var err error
		if g.programs[i], err = block.Compile(t.Schema.Fields[p.Field], f.packed(), p); err != nil {
			return nil, err
		}
	}
	if err := g.setReaders(parts); err != nil {
		return nil, err
	}
	g.pool.New = func() any { return newStep(g) }
	return g, nil
}

// Gatherer implements source.Gatherer.
type Gatherer struct {
	table    *Table
	programs []*block.Program // of each part
	reader   []int            // of each part: which of readers finds its rows
	readers  []reader
	plain    bool      // so are all readers
	pool     sync.Pool // of *step
	origins  atomic.Pointer[origins]
}

// reader finds the rows of one field.
type reader struct {
	number int
	field  *Field
	column *Column
	plain  bool // addresses follow from the metadata: no lists with offsets, no nulls, no dictionary
	stride int64
}

// setReaders makes a reader for each field that parts take.
func (g *Gatherer) setReaders(parts []source.Part) error {
	var fields []int
	for i, p := range parts {
		k := slices.Index(fields, p.Field)
		if k < 0 {
			k, fields = len(fields), append(fields, p.Field)
		}
		g.reader[i] = k
	}
	columns, err := g.table.load(fields)
	if err != nil {
		return err
	}
	g.plain = true
	for k, field := range fields {
		r := newReader(field, g.table.Fields[field], columns[k])
		g.readers, g.plain = append(g.readers, r), g.plain && r.plain
	}
	return nil
}

func newReader(number int, f *Field, c *Column) reader {
	r := reader{number: number, field: f, column: c, plain: true, stride: int64(f.bits(0))}
	if !f.packed() {
		r.stride /= 8
	}
	for i := range c.Planes {
		kind := f.Nodes[i].Kind
		if c.Planes[i].Valid != nil || c.Planes[i].Shift != nil || kind == List || kind == Coded {
			r.plain = false
		}
	}
	return r
}

// Gather implements source.Gatherer.
func (g *Gatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	if err := g.table.Gate.Enter(); err != nil {
		return err
	}
	defer g.table.Gate.Leave()
	if err := g.checkJobs(len(records), jobs); err != nil {
		return err
	}
	zeros, err := g.table.checkRecords(records)
	if err != nil {
		return err
	}
	s := g.pool.Get().(*step)
	defer g.pool.Put(s)
	defer s.release()
	s.zeros = zeros
	if err := s.locate(ctx, records); err != nil {
		return err
	}
	// A file that has already shrunk must not be touched: the fault would only
	// be an error where nobody else has taken over the process's signals.
	if err := s.check(); err != nil {
		return err
	}
	if g.table.Arm != nil {
		g.table.Arm()
	}
	err = s.readAll(jobs)
	if gone := s.check(); gone != nil {
		return gone // what was read may be zeros, and err about those
	}
	return err
}

// checkJobs makes sure that all jobs are in range.
func (g *Gatherer) checkJobs(records int, jobs []source.Job) error {
	for i, j := range jobs {
		if j.Part < 0 || j.Part >= len(g.programs) {
			return status.Errorf(status.InvalidArgument, "arrowio", "job %d is for part %d of %d", i, j.Part, len(g.programs))
		}
		n, width := j.Rows[1]-j.Rows[0], g.programs[j.Part].Bytes()
		if j.Rows[0] < 0 || n < 0 || j.Rows[1] > records {
			return status.Errorf(status.InvalidArgument, "arrowio", "job %d is for rows %v of %d records", i, j.Rows, records)
		}
		if n*width != len(j.Dst) {
			return status.Errorf(status.InvalidArgument, "arrowio", "job %d has %d bytes for %d rows of %d bytes", i, len(j.Dst), n, width)
		}
	}
	return nil
}

// checkRecords makes sure that all records are in range, and says whether some
// are -1.
func (t *Table) checkRecords(records []int64) (zeros bool, err error) {
	n := t.Index.Len()
	if Within(records, n) {
		return false, nil
	}
	for _, r := range records {
		if r >= n || r < -1 {
			return false, status.Errorf(status.OutOfRange, "arrowio", "record %d of %d", r, n).With("record", r)
		}
		zeros = zeros || r == -1
	}
	return zeros, nil
}

// Within reports whether all records lie in [0, n). It asks no question per
// record, since small rows take little longer to copy than to check: one of two
// numbers is negative if a record lies outside.
func Within(records []int64, n int64) bool {
	last, outside := n-1, int64(0)
	looked := withinFast(records, last)
	if looked < 0 {
		return false
	}
	records = records[looked:]
	for len(records) >= 4 {
		a, b, c, d := records[0], records[1], records[2], records[3]
		outside |= a | (last - a) | b | (last - b) | c | (last - c) | d | (last - d)
		records = records[4:]
	}
	for _, r := range records {
		outside |= r | (last - r)
	}
	return outside >= 0
}

// Ahead implements source.Gatherer. Only what metadata tell can be read ahead:
// values, and the offsets of lists, but not what the offsets point to.
func (g *Gatherer) Ahead(records []int64) {
	t := g.table
	if t.Store == nil || t.Gate.Enter() != nil {
		return
	}
	defer t.Gate.Leave()
	if _, err := t.checkRecords(records); err != nil {
		return
	}
	s := g.pool.Get().(*step)
	defer g.pool.Put(s)
	defer s.release()
	if s.locate(context.Background(), records) != nil || s.direct {
		return
	}
	s.walk.spans = s.walk.spans[:0]
	for i := range g.readers {
		s.ahead(&g.readers[i])
	}
	t.Store.Ahead(s.walk.spans)
}

// Close implements source.Gatherer.
func (g *Gatherer) Close() error { return nil }

// packed says whether the values are bits.
func (f *Field) packed() bool {
	last := f.Nodes[len(f.Nodes)-1]
	return last.Kind == Values && last.Size == 0
}

// address gives the address of the first byte of a slice.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
