package table

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// none are the bytes of a list without elements, which is not null.
var none = []byte{}

// noBytes and embed describe a file of Hugging Face's datasets library that is not in the data.
const (
	noBytes = "has a path and no bytes"
	embed   = "put the files into the data: save_to_disk and push_to_hub of datasets do, as does ds.with_format(\"arrow\").map(datasets.table.embed_table_storage, batched=True)"
)

// complete returns an error if a row has a struct, but no run any more because the member with
// the row is null.
func (t *traversal) complete() error {
	for i := range t.runs {
		t.elements[t.runs[i].span] = -1
	}
	for _, span := range t.begun {
		if t.elements[span] > 0 {
			name, record, batch := t.field.Name, t.spans[span].Record, t.located[span].batch
			return t.table.named(batch, status.Errorf(status.Unsupported, "arrowio", "field %q: record %d %s", name, record, noBytes).
				WithHint("%s", embed).With("field", name).With("record", record))
		}
	}
	return nil
}

// present sets the elements of the rows that have a run: one list in the first ragged level.
// The other rows are null.
func (t *traversal) present() {
	for _, span := range t.begun {
		t.elements[span] = -1
	}
	for i := range t.runs {
		t.elements[t.runs[i].span] = 1
	}
	if t.varying < 2 {
		return
	}
	for i := range t.runs {
		t.spans[t.runs[i].span].Lists = t.lists.take(t.varying - 1)
	}
}

// innerLists makes the lengths of the lists in a level below the first, as if all of
// these lists were null.
func (t *traversal) innerLists(n int) {
	for _, span := range t.begun {
		if t.elements[span] < 0 {
			continue
		}
		list := t.counts.take(int(t.elements[span]))
		for i := range list {
			list[i] = -1
		}
		t.spans[span].Lists[n-1] = list
	}
}

// ragged replaces the runs of lists of a ragged level by runs of their elements, and sets
// the lengths of the lists.
func (t *traversal) ragged(n int) error {
	list := t.field.List(n)
	buffer := list.Buffer()
	if err := t.fetchData(n, buffer); err != nil {
		return err
	}
	t.restart()
	kept := t.runs[:0] // the runs with elements
	for i := range t.runs {
		r, data := &t.runs[i], []byte(nil)
		if buffer.Bits > 0 {
			data = t.bytes[i]
		}
		lengths := t.listsOf(n, r)
		err := list.Lengths(data, lengths)
		if err != nil {
			return t.failed(r, n, err)
		}
		first, count, _ := list.Children(r.start, r.count, data) // they have any length
		if !list.Direct() {
			if length := t.length(n+1, r.batch); first > length-count {
				return t.failed(r, n, fmt.Errorf("its list goes from element %d to %d of %d", first, first+count, length))
			}
		}
		if count > 0 {
			kept = append(kept, run{r.span, r.batch, first, count, t.elements[r.span]})
			t.elements[r.span] += count
		}
	}
	t.runs = kept
	return nil
}

// restart sets the elements of the rows to 0, to count the elements of the next level.
func (t *traversal) restart() {
	for _, span := range t.begun {
		t.elements[span] = min(t.elements[span], 0)
	}
}

// listsOf returns the lengths of the lists of a run in level n, which are not set yet.
func (t *traversal) listsOf(n int, r *run) []int64 {
	if n == t.field.Structs() {
		return t.first[:]
	}
	return t.spans[r.span].Lists[n-1][r.at : r.at+r.count]
}

// rowElements returns the number of elements of a row.
func (t *traversal) rowElements(span int32) int {
	if t.varying > 0 {
		return int(t.elements[span]) * t.each
	}
	return t.each
}

// empty sets the rows of lists that are not null and have no values: empty
// lists, and lists of nulls.
func (t *traversal) empty() {
	if t.varying == 0 {
		return
	}
	for _, span := range t.begun {
		switch row := &t.spans[span].Row; {
		case *row != nil || t.elements[span] < 0:
		case t.elements[span] == 0:
			*row = none
		default:
			*row = t.scratch.take(t.rowElements(span) * t.field.Type.Size())
		}
	}
}

// lengths writes the lengths of the rows of a ragged field.
func (t *traversal) lengths(f *readField, spans []source.Span, located []located, out []int64) error {
	t.start(f, spans, located)
	for i := range spans {
		if out[i] = -1; t.encoded && t.table.encoded(located[i].batch) {
			t.order = append(t.order, inOrder(located[i].batch, i))
		} else {
			t.begin(int32(i))
		}
	}
	first := func() error { return t.firstLengths(out) }
	if err := first(); err != nil {
		return err
	}
	return t.decodeEach(true, first)
}

// firstLengths writes the lengths of the lists in level 0.
func (t *traversal) firstLengths(out []int64) error {
	if len(t.runs) == 0 {
		return nil
	}
	n := t.field.Structs()
	for k := range n {
		if err := t.enter(k); err != nil {
			return err
		}
		if err := t.children(k); err != nil {
			return err
		}
	}
	if err := t.enter(n); err != nil {
		return err
	}
	level := t.ragged
	if t.field.HasTexts() && len(t.field.Levels) == n+1 {
		level = t.findTexts
	}
	if err := level(n); err != nil {
		return err
	}
	for _, span := range t.begun {
		out[span] = t.elements[span]
	}
	return nil
}
