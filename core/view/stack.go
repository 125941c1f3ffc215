package view

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Stacked is a field that [Stack] makes of several columns.
type Stacked struct {
	Name    string
	Columns []string
}

// Stack returns a view in which columns of equal type and shape are one field, whose
// first dimension counts them. Forty columns of float32 become one field of shape
// [40], which is delivered as one array. The stacked columns are no fields of the
// view. All others stay in their order, and the stacks follow.
func Stack(src source.Source, stacks ...Stacked) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	v := &stack{base: newBase("stack", src)}
	v.base.identify = v.identify
	schema := src.Schema()
	used := map[int]bool{}
	var fields []source.Field
	for _, s := range stacks {
		f, columns, err := stackedField(schema, s)
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			used[c] = true
		}
		fields, v.columns = append(fields, f), append(v.columns, columns)
	}
	for i := len(schema.Fields) - 1; i >= 0; i-- {
		if !used[i] {
			fields, v.columns = slices.Insert(fields, 0, schema.Fields[i]), slices.Insert(v.columns, 0, []int{i})
			v.plain++
		}
	}
	for i, f := range fields {
		if slices.ContainsFunc(fields[:i], func(g source.Field) bool { return g.Name == f.Name }) {
			return nil, status.Errorf(status.InvalidArgument, "view", "two fields of the stack are called %q", f.Name).
				WithHint("give the stack another name").With("field", f.Name)
		}
	}
	v.schema, v.records = source.Schema{Fields: fields, Skipped: schema.Skipped}, src.Len()
	if err := checkSkipped("stack", v.schema); err != nil {
		return nil, err
	}
	return v, nil
}

// stackedField returns the field, and the numbers of its columns.
func stackedField(schema source.Schema, s Stacked) (f source.Field, columns []int, err error) {
	if err := checkName(s.Name); err != nil {
		return f, nil, err
	}
	if len(s.Columns) == 0 {
		return f, nil, status.Errorf(status.InvalidArgument, "view", "the stack %q has no columns", s.Name).
			WithHint("name at least one")
	}
	for i, name := range s.Columns {
		n, err := schema.Find(name)
		if err != nil {
			return f, nil, err
		}
		next := schema.Fields[n]
		if next.Ragged > 0 {
			return f, nil, status.Errorf(status.Unsupported, "view", "the stack %q cannot join column %q: it is ragged", s.Name, name).
				WithHint("pad it first").With("field", name)
		}
		if i == 0 {
			f = next
		}
		if typeOf(next) != typeOf(f) {
			return f, nil, status.Errorf(status.InvalidArgument, "view", "the stack %q cannot join column %q, which is %s, and column %q, which is %s",
				s.Name, f.Name, typeOf(f), name, typeOf(next)).
				WithHint("stack columns of one type and shape").With("field", name)
		}
		f.Nullable, f.HasNulls = f.Nullable || next.Nullable, f.HasNulls || next.HasNulls
		if !slices.Equal(f.Names, next.Names) {
			f.Names = nil
		}
		columns = append(columns, n)
	}
	f.Name, f.Lists, f.Shape = s.Name, false, append([]int{len(columns)}, f.Shape...)
	return f, columns, nil
}

// stack is a view with stacked fields.
type stack struct {
	base
	plain   int     // number of fields before the stacks
	columns [][]int // by field: its columns; the one column of a field that is not stacked
}

func (v *stack) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("stack", below...)
	for i, columns := range v.columns[v.plain:] {
		name := v.schema.Fields[v.plain+i].Name
		if err := hashNumbers(ctx, h, int64(len(name)), int64(len(columns))); err != nil {
			return source.Fingerprint{}, err
		}
		h.Write([]byte(name))
		for _, c := range columns {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(c)))
		}
	}
	return fingerprint(h), nil
}

// Facts implements source.Source.
func (v *stack) Facts() source.Facts {
	f := v.base.Facts()
	f.Check = v.checked(func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
		return below(ctx, v.columnsOf(fields), start, stop)
	})
	return f
}

// columnsOf returns the columns of fields.
func (v *stack) columnsOf(fields []int) (columns []int) {
	for _, f := range fields {
		columns = append(columns, v.columns[f]...)
	}
	return columns
}

// Gatherer implements source.Source.
func (v *stack) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	set, err := block.Compile(v.schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &stackGatherer{view: v, set: set, parts: make([]stackPart, len(parts))}
	var below []source.Part
	for i, p := range parts {
		s := &g.parts[i]
		s.first = len(below)
		if p.Field < v.plain {
			s.columns = 1
			p.Field = v.columns[p.Field][0]
			below = append(below, p)
			continue
		}
		column := p
		column.Boxes = [][][2]int{p.Boxes[0][1:]}
		s.width = column.Bytes(cmp.Or(p.To, v.schema.Fields[p.Field].Type))
		for _, box := range p.Boxes {
			for _, c := range v.columns[p.Field][box[0][0]:box[0][1]] {
				column.Field = c
				below = append(below, column)
				s.columns++
			}
		}
	}
	if g.Gatherer, err = v.below[0].Gatherer(below); err != nil {
		return nil, err
	}
	g.pool.New = func() any { return &stackState{} }
	return g, nil
}

// stackGatherer gathers columns into memory of its own, and interleaves them.
type stackGatherer struct {
	source.Gatherer
	view  *stack
	set   *block.Set
	parts []stackPart
	pool  sync.Pool // of *stackState
}

// stackPart is a part of the view in the gatherer below.
type stackPart struct {
	first, columns int // the parts below, one for each column
	width          int // bytes of one column's box; 0 if there is nothing to interleave
}

// stackState is the working memory of one gather.
type stackState struct {
	jobs    []source.Job
	scratch []byte
}

// Gather implements source.Gatherer.
func (g *stackGatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.set, records, jobs, func(ctx context.Context) error {
		s := g.pool.Get().(*stackState)
		defer g.pool.Put(s)
		defer func() { clear(s.jobs) }() // they refer to the caller's memory
		s.divide(g.parts, jobs)
		if err := g.Gatherer.Gather(ctx, records, s.jobs); err != nil {
			return err
		}
		scratch := s.scratch
		for _, j := range jobs {
			if p := g.parts[j.Part]; p.width > 0 {
				interleave(j.Dst, scratch[:len(j.Dst)], j.Rows[1]-j.Rows[0], p.columns, p.width)
				scratch = scratch[len(j.Dst):]
			}
		}
		return nil
	})
}

// divide replaces each job for a stacked field by one for each column.
func (s *stackState) divide(parts []stackPart, jobs []source.Job) {
	size := 0
	for _, j := range jobs {
		if parts[j.Part].width > 0 {
			size += len(j.Dst)
		}
	}
	s.scratch = slices.Grow(s.scratch[:0], size)[:size]
	s.jobs = s.jobs[:0]
	scratch := s.scratch
	for _, j := range jobs {
		p := parts[j.Part]
		if p.width == 0 && p.columns > 0 {
			s.jobs = append(s.jobs, source.Job{Part: p.first, Rows: j.Rows, Dst: j.Dst})
			continue
		}
		for c := range p.columns {
			n := (j.Rows[1] - j.Rows[0]) * p.width
			s.jobs = append(s.jobs, source.Job{Part: p.first + c, Rows: j.Rows, Dst: scratch[:n:n]})
			scratch = scratch[n:]
		}
	}
}
