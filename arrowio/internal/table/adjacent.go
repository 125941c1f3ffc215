package table

import (
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Adjacent implements Adjacent of [source.Facts]. The rows of a field lie one after the other in a
// record batch that is not encoded, if they have no nulls. They also do in consecutive record
// batches without other bytes between them.
//
// Consecutive rows are a range of bytes, which begins at a row. So the gatherer is over a table of
// the same bytes, with longer rows that overlap.
func (t *Table) Adjacent(parts []source.Part, length int64) (source.Gatherer, func(record int64) int64, error) {
	if err := t.Calls.Enter(); err != nil {
		return nil, nil, err
	}
	defer t.Calls.Leave()
	for p := range t.Index.Entries() {
		if t.encoded(t.Index.Batch(p)) {
			return nil, nil, nil
		}
	}
	var fields []int
	for _, p := range parts {
		if !slices.Contains(fields, p.Field) {
			fields = append(fields, p.Field)
		}
	}
	columns, err := t.load(fields)
	if err != nil {
		return nil, nil, err
	}
	plain := make([]addressed, len(fields))
	for k, field := range fields {
		plain[k] = t.addressed(field, columns[k])
	}
	runs := t.runs(plain)
	long := &Table{
		Fields: slices.Clone(t.Fields), Schema: source.Schema{Fields: slices.Clone(t.Schema.Fields)}, Strides: make([][]int, len(t.Fields)),
		Store: t.Store, Calls: t.Calls, Columns: make([]*buffers.Column, len(t.Fields)), columns: map[int]*buffers.Column{},
	}
	for k, field := range fields {
		if !long.lengthen(t, field, plain[k], runs.batches, length) {
			return nil, nil, nil
		}
	}
	rows := runs.windows(t.Index.Len(), length)
	long.Index = index.New(rows)
	for _, batch := range runs.batches {
		if t.Files != nil {
			long.Files = append(long.Files, t.file(batch))
		}
	}
	g, err := long.Gatherer(parts)
	return g, runs.number(rows), err
}

// lengthen sets a field to rows of a table, as many as length, that lie one after the other from each
// of some record batches on. It returns false if the rows do not lie so.
func (t *Table) lengthen(of *Table, field int, a addressed, batches []int32, length int64) bool {
	f := &t.Schema.Fields[field]
	shape := append([]int{int(length)}, f.Shape...)
	if !a.direct || a.packed || length > arrowtype.MaxRowBytes || !arrowtype.Possible(f.Type, shape) {
		return false
	}
	strides := make([]int, len(f.Shape))
	for d, stride := len(strides)-1, f.Type.Size(); d >= 0; d-- {
		strides[d], stride = stride, stride*f.Shape[d]
	}
	if of.Strides != nil && of.Strides[field] != nil {
		strides = of.Strides[field][1:]
	}
	t.Strides[field] = append([]int{int(a.stride), int(a.stride)}, strides...)
	t.Fields[field] = arrowtype.Adjacent(f.Name, f.Type, shape)
	f.Shape = shape
	c := &buffers.Column{Planes: make([]buffers.Plane, len(t.Fields[field].Levels)), Memory: a.column.Memory}
	data := &c.Planes[len(c.Planes)-1].Data
	for _, batch := range batches {
		*data = append(*data, a.begin(batch))
	}
	t.Columns[field], t.columns[field] = c, c
	return true
}

// begin returns the position of the first row of a record batch.
func (a *addressed) begin(batch int32) int64 {
	return a.column.Planes[len(a.column.Planes)-1].Data[batch]
}

// runs are the longest ranges of records with rows that lie one after the other in each of some
// columns: the first record of each range, and its record batch.
type runs struct {
	starts  []int64
	batches []int32
}

// runs returns the runs of some columns, which are direct.
func (t *Table) runs(columns []addressed) (r runs) {
	for p := range t.Index.Entries() {
		batch, start, last := t.Index.Batch(p), t.Index.Start(p), len(r.starts)-1
		follows := last >= 0 && t.file(batch) == t.file(r.batches[last])
		for k := range columns {
			a := &columns[k]
			follows = follows && a.direct && a.begin(batch) == a.begin(r.batches[last])+(start-r.starts[last])*a.stride
		}
		if !follows {
			r.starts, r.batches = append(r.starts, start), append(r.batches, batch)
		}
	}
	return r
}

// windows returns how many ranges of a length each run has.
func (r runs) windows(records, length int64) []int64 {
	rows := make([]int64, len(r.starts))
	for i, start := range r.starts {
		end := records
		if i+1 < len(r.starts) {
			end = r.starts[i+1]
		}
		rows[i] = max(end-start-length+1, 0)
	}
	return rows
}

// number returns the function that numbers the ranges by their first records. The runs have as many
// ranges as rows says.
func (r runs) number(rows []int64) func(record int64) int64 {
	firsts, first := make([]int64, len(rows)), int64(0)
	for i, n := range rows {
		firsts[i], first = first, first+n
	}
	return func(record int64) int64 {
		run := sort.Search(len(r.starts), func(i int) bool { return r.starts[i] > record }) - 1
		if at := record - r.starts[run]; at < rows[run] {
			return firsts[run] + at
		}
		return -1
	}
}
