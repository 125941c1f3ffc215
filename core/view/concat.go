package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Concat returns a view of the records of several datasets, one dataset after the
// other. Their fields must have the same names, types of values and shapes; see
// [source.Field.Unify]. The view has the order of the first dataset. Lists of one length and lists
// of another, or of several, are joined to a ragged field. A field may hold nulls if it may in one
// of the datasets. Names of classes must be equal where two datasets have some. A dataset may
// occur twice.
func Concat(sources ...source.Source) (source.Source, error) {
	if len(sources) == 0 {
		return nil, status.New(status.InvalidArgument, "view", "there are no datasets to concatenate").
			WithHint("give at least one")
	}
	if err := source.Given("view", sources...); err != nil {
		return nil, err
	}
	var flat []source.Source
	for i, s := range sources {
		s, err := like(sources[0].Schema(), s, i)
		if err != nil {
			return nil, err
		}
		if c, ok := s.(*concat); ok {
			if err := c.calls.Enter(); err != nil {
				return nil, err
			}
			defer c.calls.Leave()
			flat = append(flat, c.below...)
			continue
		}
		flat = append(flat, s)
	}
	v := &concat{base: newBase("concatenation", flat...), starts: make([]int64, len(flat)+1)}
	for i, s := range flat {
		v.starts[i+1] = v.starts[i] + s.Len()
	}
	v.records, v.schema, v.base.identify = v.starts[len(flat)], joined(flat), v.identify
	return v, nil
}

// like returns dataset i with its fields in the order of dataset 0.
func like(first source.Schema, s source.Source, i int) (source.Source, error) {
	other := s.Schema()
	if err := agree(first, other, i); err != nil {
		return nil, err
	}
	names := make([]string, len(first.Fields))
	ordered := true
	for k := range first.Fields {
		names[k] = first.Fields[k].Name
		ordered = ordered && other.Fields[k].Name == names[k]
	}
	if ordered {
		return s, nil
	}
	return Select(s, names...)
}

// agree returns the first difference between the fields of dataset 0 and dataset i.
func agree(first, other source.Schema, i int) error {
	differ := func(format string, args ...any) error {
		return status.Errorf(status.InvalidArgument, "view", "datasets 0 and %d differ: %s", i, fmt.Sprintf(format, args...)).
			WithHint("make their fields equal, for example by select and rename").With("dataset", i)
	}
	for _, a := range first.Fields {
		_, b, ok := other.Field(a.Name)
		if !ok {
			return differ("only dataset 0 has field %q", a.Name)
		}
		if _, ok := a.Unify(b); !ok {
			return differ("field %q is %s and %s", a.Name, typeOf(a), typeOf(b))
		}
		if what := source.DifferentClasses(a.Names, b.Names); what != "" {
			return differ("field %q stands for other classes: %s", a.Name, what)
		}
	}
	for _, b := range other.Fields {
		if _, _, ok := first.Field(b.Name); !ok {
			return differ("only dataset %d has field %q", i, b.Name)
		}
	}
	return nil
}

// typeOf describes what the rows of a field are, such as "int64[3] (timestamp[s])".
func typeOf(f source.Field) string {
	if f.Ragged > 0 {
		return f.TypeString()
	}
	text := f.Type.String()
	if len(f.Shape) > 0 {
		text += strings.ReplaceAll(fmt.Sprint(f.Shape), " ", ", ")
	}
	if f.Logical != "" {
		text += " (" + f.Logical + ")"
	}
	return text
}

// joined returns the schema of the first dataset. A field may hold nulls, is ragged, or is
// skipped, if that is so in one of the datasets.
func joined(sources []source.Source) source.Schema {
	schema := sources[0].Schema()
	out := source.Schema{Fields: slices.Clone(schema.Fields), Skipped: slices.Clone(schema.Skipped)}
	for _, s := range sources[1:] {
		for k, f := range s.Schema().Fields {
			out.Fields[k], _ = out.Fields[k].Unify(f)
			if !slices.Equal(out.Fields[k].Names, f.Names) {
				out.Fields[k].Names = nil // unknown in one of the datasets
			}
		}
		for _, skipped := range s.Schema().Skipped {
			if !slices.ContainsFunc(out.Skipped, func(o source.Skipped) bool { return o.Name == skipped.Name }) {
				out.Skipped = append(out.Skipped, skipped)
			}
		}
	}
	return out
}

// concat is a view of several datasets.
type concat struct {
	base
	starts []int64 // by dataset: its first record; then the number of all records
}

// find returns the dataset of a record.
func (v *concat) find(record int64) int {
	return sort.Search(len(v.below)-1, func(i int) bool { return v.starts[i+1] > record })
}

// identify leaves out datasets without records, unless all are empty.
func (v *concat) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	var full []source.Fingerprint
	for i, f := range below {
		if v.starts[i] < v.starts[i+1] {
			full = append(full, f)
		}
	}
	switch len(full) {
	case 0:
		return below[0], nil
	case 1:
		return full[0], nil
	}
	return fingerprint(hashOf("concat", full...)), nil
}

// Facts implements source.Source.
func (v *concat) Facts() source.Facts {
	f := v.base.Facts()
	f.Units, f.Check = v.units, v.check
	return f
}

// check checks the records of each dataset that has a check.
func (v *concat) check(ctx context.Context, fields []int, start, stop int64) error {
	return v.call(ctx, func(ctx context.Context) error {
		for i, s := range v.below {
			from, to := max(start, v.starts[i])-v.starts[i], min(stop, v.starts[i+1])-v.starts[i]
			if check := s.Facts().Check; check != nil && from < to {
				if err := check(ctx, fields, from, to); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Gatherer implements source.Source.
func (v *concat) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	set, err := block.Compile(v.schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &concatGatherer{view: v, set: set, below: make([]source.Gatherer, len(v.below))}
	for i, s := range v.below {
		if g.below[i], err = s.Gatherer(parts); err != nil {
			return nil, errors.Join(err, closeAll(g.below[:i]))
		}
	}
	g.pool.New = func() any { return &concatState{shares: make([]share, len(v.below))} }
	return g, nil
}

// closeAll closes gatherers or readers.
func closeAll[T interface{ Close() error }](list []T) (err error) {
	for _, g := range list {
		err = errors.Join(err, g.Close())
	}
	return err
}

// concatGatherer divides records and jobs among the gatherers of the datasets.
type concatGatherer struct {
	view  *concat
	set   *block.Set
	below []source.Gatherer
	pool  sync.Pool // of *concatState
}

// concatState is the working memory of one gather.
type concatState struct {
	shares []share // by dataset
	owner  []int   // by record: its dataset
	place  []int   // by record: its index in the dataset's list
}

// share is the part of a gather that one dataset does.
type share struct {
	records []int64
	jobs    []source.Job
}

// Gather implements source.Gatherer.
func (g *concatGatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.set, records, jobs, func(ctx context.Context) error {
		s := g.pool.Get().(*concatState)
		defer g.pool.Put(s)
		defer s.reset()
		s.divide(g.view, records)
		for _, j := range jobs {
			s.add(j)
		}
		for i := range s.shares {
			if share := &s.shares[i]; len(share.jobs) > 0 {
				if err := g.below[i].Gather(ctx, share.records, share.jobs); err != nil {
					return err
				}
			}
		}
		return ended(ctx)
	})
}

// divide adds each record to the list of its dataset. Padding joins the record before
// it.
func (s *concatState) divide(v *concat, records []int64) {
	owner := 0
	for _, r := range records {
		if r >= 0 && (r < v.starts[owner] || r >= v.starts[owner+1]) {
			owner = v.find(r)
		}
		share := &s.shares[owner]
		s.owner, s.place = append(s.owner, owner), append(s.place, len(share.records))
		if r >= 0 {
			r -= v.starts[owner]
		}
		share.records = append(share.records, r)
	}
}

// add divides a job into one for each run of records of one dataset.
func (s *concatState) add(j source.Job) {
	width := 0
	if n := j.Rows[1] - j.Rows[0]; n > 0 {
		width = len(j.Dst) / n
	}
	for from := j.Rows[0]; from < j.Rows[1]; {
		owner, to := s.owner[from], from+1
		for to < j.Rows[1] && s.owner[to] == owner {
			to++
		}
		at, n := s.place[from], to-from
		dst := j.Dst[(from-j.Rows[0])*width:][:n*width]
		s.shares[owner].jobs = append(s.shares[owner].jobs, source.Job{Part: j.Part, Rows: [2]int{at, at + n}, Dst: dst})
		from = to
	}
}

// reset drops references to the caller's memory.
func (s *concatState) reset() {
	for i := range s.shares {
		share := &s.shares[i]
		clear(share.jobs)
		share.records, share.jobs = share.records[:0], share.jobs[:0]
	}
	s.owner, s.place = s.owner[:0], s.place[:0]
}

// Ahead implements source.Gatherer.
func (g *concatGatherer) Ahead(records []int64) {
	g.view.ahead(records, func(i int, list []int64) { g.below[i].Ahead(list) })
}

// ahead announces the records that exist to their datasets.
func (v *concat) ahead(records []int64, announce func(dataset int, records []int64)) {
	if v.calls.Enter() != nil {
		return
	}
	defer v.calls.Leave()
	s := concatState{shares: make([]share, len(v.below))}
	s.divide(v, v.existing(nil, records))
	for i, share := range s.shares {
		if len(share.records) > 0 {
			announce(i, share.records)
		}
	}
}

// Close implements source.Gatherer.
func (g *concatGatherer) Close() error { return closeAll(g.below) }
