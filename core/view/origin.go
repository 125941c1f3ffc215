package view

import (
	"context"
	"sort"

	"github.com/meshfeed/meshfeed/core/source"
)

// origin says which fields below make the rows of a field of a view. A view is over the records
// of the datasets below, one dataset after the other, with the numbers that base.renumber gives
// them. The generic gatherer and reader need nothing more.
type origin struct {
	fields []int // the fields below, of the same record; one unless rows are joined or computed

	// joined says that the row has a first dimension, which counts the fields, or in a window its
	// records.
	joined bool

	// compute sets the row of a span; it is nil if a row is passed on or joined. It gets a
	// row for each of the fields, or the length of the row of the one field if lengths is set.
	compute func(ctx context.Context, draw source.Draw, m *memory, to *source.Span, rows []source.Span, length int64) error
	lengths bool
	zero    bool // a row that cannot be computed keeps its memory, with zeros
}

// passed returns the origins of fields that are the fields with these numbers below.
func passed(fields ...int) []origin {
	list := make([]origin, len(fields))
	for i := range fields {
		list[i].fields = fields[i : i+1 : i+1]
	}
	return list
}

// allOf returns the origins of the fields of a dataset.
func allOf(src source.Source) []origin {
	fields := make([]int, len(src.Schema().Fields))
	for i := range fields {
		fields[i] = i
	}
	return passed(fields...)
}

// fieldsBelow returns the fields below that make the fields.
func (b *base) fieldsBelow(fields []int) (below []int) {
	for _, f := range fields {
		below = append(below, b.origins[f].fields...)
	}
	return below
}

// find returns the dataset that has a record, and its number there.
func (b *base) find(record int64) (dataset int, below int64) {
	dataset = sort.Search(len(b.below)-1, func(i int) bool { return b.starts[i+1] > record })
	return dataset, record - b.starts[dataset]
}

// located appends the numbers that records of the view have in the datasets below to an empty
// list.
func (b *base) located(draw source.Draw, list *[]int64, records []int64) {
	if b.renumber == nil {
		*list = append(*list, records...)
	} else {
		b.renumber(draw, list, records)
	}
}

// ahead announces the records that exist to their datasets. A gather or a read reports the
// others.
func (b *base) ahead(draw source.Draw, records []int64, announce func(dataset int, records []int64)) {
	if b.calls.Enter() != nil {
		return
	}
	defer b.calls.Leave()
	existing, list := b.lists.get(), b.lists.get()
	defer b.lists.put(existing)
	defer b.lists.put(list)
	*existing = b.existing(*existing, records)
	b.located(draw, list, *existing)
	if len(b.below) == 1 {
		announce(0, *list)
		return
	}
	lists := make([][]int64, len(b.below))
	for _, r := range *list {
		dataset, below := b.find(r)
		lists[dataset] = append(lists[dataset], below)
	}
	for i, list := range lists {
		if len(list) > 0 {
			announce(i, list)
		}
	}
}

// memory hands out the rows that a call computes. The next call uses it again.
type memory struct {
	block, free []byte
	used        int
}

func (m *memory) bytes(n int) (b []byte) {
	m.used += n
	if n > len(m.free) {
		m.free = make([]byte, max(n, len(m.block)))
		if m.block == nil {
			m.block = m.free
		}
	}
	b, m.free = m.free[:n:n], m.free[n:]
	return b
}

// reset ends a call.
func (m *memory) reset() {
	if m.used > len(m.block) {
		m.block = make([]byte, m.used)
	}
	m.free, m.used = m.block, 0
}
