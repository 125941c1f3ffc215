package view

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Windows says which records a [Window] joins.
type Windows struct {
	Length int64  // records in a window
	Stride int64  // records from the start of a window to that of the next; 0: 1
	Within string // the name of a field that has one value in a window; empty for none
}

// Window returns a view whose record k consists of Length consecutive records of src,
// from record k*Stride on. Every field gets a first dimension of that length. Records
// behind the last whole window are left out.
//
// If Within names a field, such as the number or the name of a patient, its changes divide the
// records into runs. Each run is divided into windows by itself, from its first record
// on. Window then reads the field once, and keeps 16 bytes for each run.
func Window(ctx context.Context, src source.Source, w Windows) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	w.Stride = cmp.Or(w.Stride, 1)
	if w.Length < 1 || w.Stride < 1 {
		return nil, status.Errorf(status.InvalidArgument, "view", "windows of %d records that begin every %d records cannot be made", w.Length, w.Stride).
			WithHint("give a length and a stride of at least 1")
	}
	v := &window{base: newBase("window", src), Windows: w}
	v.base.identify = v.identify
	add := func(start, stop int64, _ []byte) {
		v.longest = max(v.longest, stop-start)
		if n := stop - start - w.Length; n >= 0 {
			v.runs, v.firsts = append(v.runs, start), append(v.firsts, v.records)
			v.records += n/w.Stride + 1
		}
	}
	if w.Within == "" {
		add(0, src.Len(), nil)
	} else if err := eachRun(ctx, src, w.Within, add); err != nil {
		return nil, err
	}
	if v.records == 0 {
		return nil, v.tooLong()
	}
	v.schema.Skipped = slices.Clone(src.Schema().Skipped)
	for i, f := range src.Schema().Some().Fields {
		if f.Ragged > 0 {
			v.schema.Skipped = append(v.schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: "windows join rows of one shape; pad it first"})
			continue
		}
		v.fields = append(v.fields, i)
		f.Lists, f.Shape = false, append([]int{int(w.Length)}, f.Shape...)
		v.schema.Fields = append(v.schema.Fields, f)
	}
	return v, nil
}

// window is a view of windows.
type window struct {
	base
	Windows
	runs    []int64 // the first records of the runs that have a window
	firsts  []int64 // by run: the number of its first window
	fields  []int   // by field: its number below
	longest int64   // the number of records in the longest run
}

// tooLong returns the error for a dataset without a window.
func (v *window) tooLong() error {
	if v.longest == 0 {
		return status.New(status.InvalidArgument, "view", "the dataset has no records, so it has no windows").
			WithHint("check the filter or the slice below the windows")
	}
	e := status.Errorf(status.InvalidArgument, "view", "a window takes %d records, but the dataset has %d", v.Length, v.longest)
	if v.Within != "" {
		e = status.Errorf(status.InvalidArgument, "view", "a window takes %d records, but the longest run of one value of %q has %d", v.Length, v.Within, v.longest)
	}
	return e.WithHint("make the window shorter")
}

// start returns the first record of a window.
func (v *window) start(k int64) int64 {
	run := sort.Search(len(v.firsts), func(i int) bool { return v.firsts[i] > k }) - 1
	return v.runs[run] + (k-v.firsts[run])*v.Stride
}

// identify hashes the runs instead of the name that they follow from.
func (v *window) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("window", below...)
	if err := hashNumbers(ctx, h, v.Length, v.Stride, int64(len(v.runs))); err != nil {
		return source.Fingerprint{}, err
	}
	if err := hashNumbers(ctx, h, v.runs...); err != nil {
		return source.Fingerprint{}, err
	}
	err := hashNumbers(ctx, h, append(v.firsts, v.records)...)
	return fingerprint(h), err
}

// Facts implements source.Source.
func (v *window) Facts() source.Facts {
	f := v.base.Facts()
	f.Units, f.Check = v.units, v.checked(v.check)
	return f
}

// check checks the records of windows. If there are records between windows, a failure may be
// about one of them. The gather then reports it.
func (v *window) check(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
	if start >= stop {
		return nil
	}
	numbers := make([]int, len(fields))
	for i, f := range fields {
		numbers[i] = v.fields[f]
	}
	err := below(ctx, numbers, v.start(start), v.start(stop-1)+v.Length)
	if v.Within != "" || v.Stride > v.Length {
		return ended(ctx)
	}
	return err
}

// Gatherer implements source.Source.
func (v *window) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	set, err := block.Compile(v.schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &windowGatherer{view: v, set: set}
	below := slices.Clone(parts)
	for i, p := range parts {
		ranges := make([][2]int, len(p.Boxes))
		for k, box := range p.Boxes {
			ranges[k] = box[0]
		}
		below[i].Field, below[i].Boxes = v.fields[p.Field], [][][2]int{p.Boxes[0][1:]}
		g.add(ranges)
	}
	g.Gatherer, err = v.below[0].Gatherer(below)
	if err != nil {
		return nil, err
	}
	g.pool.New = func() any { return &windowState{} }
	return g, nil
}

// windowGatherer lists the records of windows. The gatherer below then writes the rows
// of a window one after the other, which is their order in the window.
type windowGatherer struct {
	source.Gatherer
	view *window
	set  *block.Set
	cuts []timeRange // each once
	cut  []int       // by part: its ranges of dimension 0, an index in cuts
	pool sync.Pool   // of *windowState
}

// timeRange is the part of every window that some parts take.
type timeRange struct {
	ranges [][2]int
	rows   int // in all ranges
}

// add adds the ranges of a part, if no earlier part has the same.
func (g *windowGatherer) add(ranges [][2]int) {
	i := slices.IndexFunc(g.cuts, func(c timeRange) bool { return slices.Equal(c.ranges, ranges) })
	if i < 0 {
		i = len(g.cuts)
		c := timeRange{ranges: ranges}
		for _, r := range ranges {
			c.rows += r[1] - r[0]
		}
		g.cuts = append(g.cuts, c)
	}
	g.cut = append(g.cut, i)
}

// list appends the records of a window.
func (c *timeRange) list(records []int64, start int64) []int64 {
	for _, r := range c.ranges {
		for t := int64(r[0]); t < int64(r[1]); t++ {
			if start < 0 {
				records = append(records, -1)
			} else {
				records = append(records, start+t)
			}
		}
	}
	return records
}

// windowState is the working memory of one gather.
type windowState struct {
	records []int64
	jobs    []source.Job
}

// Gather implements source.Gatherer.
func (g *windowGatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.set, records, jobs, func(ctx context.Context) error {
		s := g.pool.Get().(*windowState)
		defer g.pool.Put(s)
		s.records, s.jobs = s.records[:0], s.jobs[:0]
		defer func() { clear(s.jobs) }() // they refer to the caller's memory
		for i := range g.cuts {
			g.divide(s, i, records, jobs)
		}
		return g.Gatherer.Gather(ctx, s.records, s.jobs)
	})
}

// divide adds the jobs of one cut, and the records of their windows.
func (g *windowGatherer) divide(s *windowState, cut int, records []int64, jobs []source.Job) {
	from, to := len(records), 0
	for _, j := range jobs {
		if g.cut[j.Part] == cut {
			from, to = min(from, j.Rows[0]), max(to, j.Rows[1])
		}
	}
	first, c := len(s.records), &g.cuts[cut]
	for _, j := range jobs {
		if g.cut[j.Part] == cut {
			rows := [2]int{first + (j.Rows[0]-from)*c.rows, first + (j.Rows[1]-from)*c.rows}
			s.jobs = append(s.jobs, source.Job{Part: j.Part, Rows: rows, Dst: j.Dst})
		}
	}
	for _, r := range records[min(from, to):to] {
		s.records = c.list(s.records, g.first(r))
	}
}

// first returns the first record of a window, or -1 for padding.
func (g *windowGatherer) first(record int64) int64 {
	if record < 0 {
		return -1
	}
	return g.view.start(record)
}

// Ahead implements source.Gatherer.
func (g *windowGatherer) Ahead(records []int64) {
	if g.view.calls.Enter() != nil {
		return
	}
	defer g.view.calls.Leave()
	s := g.pool.Get().(*windowState)
	defer g.pool.Put(s)
	s.records = s.records[:0]
	for _, r := range g.view.existing(nil, records) {
		for i := range g.cuts {
			s.records = g.cuts[i].list(s.records, g.view.start(r))
		}
	}
	g.Gatherer.Ahead(s.records)
}
