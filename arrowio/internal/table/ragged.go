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
	if err := t.fetchData(n, t.field.List(n).Buffer()); err != nil {
		return err
	}
	t.restart()
	kept := t.runs[:0] // the runs with elements
	for i := range t.runs {
		r := &t.runs[i]
		first, count, err := t.readLists(n, r, t.dataOf(n, i), t.listsOf(n, r))
		if err != nil {
			return t.failed(r, n, err)
		}
		if count > 0 {
			kept = append(kept, run{r.span, r.batch, first, count, t.elements[r.span]})
			t.elements[r.span] += count
		}
	}
	t.runs = kept
	return nil
}

// dataOf returns the bytes of a run in the data buffer of level n, nil if the level has none.
func (t *traversal) dataOf(n, run int) []byte {
	if t.field.Levels[n].Buffer().Bits == 0 {
		return nil
	}
	return t.bytes[run]
}

// readLists writes the lengths of the lists of a run in level n, and returns the elements of all of them.
func (t *traversal) readLists(n int, r *run, data []byte, lengths []int64) (first, count int64, err error) {
	list := t.field.List(n)
	if err := list.Lengths(data, lengths); err != nil {
		return 0, 0, err
	}
	first, count, _ = list.Children(r.start, r.count, data) // they have any length
	if list.Direct() {
		return first, count, nil
	}
	if length := t.length(n+1, r.batch); first > length-count {
		return 0, 0, fmt.Errorf("its list goes from element %d to %d of %d", first, first+count, length)
	}
	return first, count, nil
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

// adjoins reports whether the lengths of rows that follow each other are read together. The members of
// structs, texts without offsets, and fields that files store in several ways are read row by row.
func (f *readField) adjoins() bool {
	return f.column.Variants == nil && f.field.Structs() == 0 && !(f.field.HasTexts() && len(f.field.Levels) == 1)
}

// list sets the spans of a call of Lengths. A span stands for records that follow each other in a batch if
// the field adjoins, else for one record.
func (s *readState) list(f *readField, records []int64) {
	s.spans, s.firsts = s.spans[:0], s.firsts[:0]
	rest := int64(0) // the records of the batch that are behind the last one
	for i, record := range records {
		if rest > 0 && record == records[i-1]+1 {
			rest--
			continue
		}
		s.spans, s.firsts = append(s.spans, source.Span{Field: f.number, Record: record}), append(s.firsts, i)
		if rest = 0; f.adjoins() {
			rest = s.table.Index.Behind(record)
		}
	}
	s.firsts = append(s.firsts, len(records))
}

// lengths writes the lengths of the rows of a ragged field, for the spans of list.
func (t *traversal) lengths(f *readField, spans []source.Span, located []located, out []int64) error {
	t.start(f, spans, located)
	begin, read := t.begin, t.firstLengths
	if f.adjoins() {
		begin, read = t.beginAll, t.adjacentLengths
	}
	for i := range out {
		out[i] = -1
	}
	for i := range spans {
		if t.encoded && t.table.encoded(located[i].batch) {
			t.order = append(t.order, inOrder(located[i].batch, i))
		} else {
			begin(int32(i))
		}
	}
	if err := read(out); err != nil {
		return err
	}
	return t.decodeEach(true, begin, func() error { return read(out) })
}

// beginAll adds the first run of all rows that a span stands for.
func (t *traversal) beginAll(span int32) {
	t.begin(span)
	t.runs[len(t.runs)-1].count = int64(t.firsts[span+1] - t.firsts[span])
}

// adjacentLengths writes the lengths of the lists in level 0, where each list is a row.
func (t *traversal) adjacentLengths(out []int64) error {
	if len(t.runs) == 0 {
		return nil
	}
	if err := t.enter(0); err != nil {
		return err
	}
	buffer := t.field.List(0).Buffer()
	if err := t.fetchData(0, buffer); err != nil {
		return err
	}
	for i := range t.runs {
		r, data := &t.runs[i], t.dataOf(0, i)
		lengths := out[int64(t.firsts[r.span])+r.at:][:r.count]
		_, _, err := t.readLists(0, r, data, lengths)
		for k := int64(0); err != nil && k < r.count; k++ {
			from, _ := buffer.Bytes(k, 1)
			if _, _, err := t.readLists(0, &run{r.span, r.batch, r.start + k, 1, 0}, data[from:], lengths[k:k+1]); err != nil {
				return t.table.damaged(t.number, r.batch, t.spans[r.span].Record+r.at+k, err)
			}
		}
	}
	return nil
}

// firstLengths writes the lengths of the lists in the level below structs, or of the texts there.
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
