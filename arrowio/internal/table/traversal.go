package table

import (
	"errors"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// run is a range of elements of a level that belong to one row and are not null. A
// row begins as one run. Nulls divide a run into several.
type run struct {
	span         int32 // index in traversal.spans
	batch        int32
	start, count int64 // elements in the level's buffers
	at           int64 // number of the row's elements in this level before start
}

// gap is a range of null elements of a row, in elements of the array.
type gap struct {
	span     int32
	from, to int64
}

// traversal finds the rows of one field. It replaces runs of a level's elements by
// runs of the next level's elements, and reads the bytes of the last level.
type traversal struct {
	*readState
	*readField
	spans   []source.Span // rows of the field
	located []located     // where each span is
	order   []uint64      // the spans in compressed batches, sorted: the batch, and the index in 32 bits
	batches []int32       // in order, each once

	begun    []int32 // indices of the spans of the runs at the top level
	elements []int64 // by span: the elements of its row in the level, -1 for a null row; for varying lists only

	decoded *buffers.Decoded // the batch of all runs, decoded; nil if it is not compressed
	held    int64            // bytes of the decoded batches that a call may keep in memory until its end
	runs    []run
	next    []run    // the divided runs, which then become runs
	bytes   [][]byte // by run
	gaps    []gap
	data    arrowtype.Data
	batch   int32 // data has its dictionary; -1 for none

	first     [1]int64        // the length of a list in level 0
	found     [][]byte        // the texts of all runs, one after the other
	wanted    []int           // indices of the runs or texts to acquire
	pieces    []resident.Span // by wanted run or text
	addresses []uintptr       // by piece
}

// rows sets the rows of the spans. It uses compressed batches one by one, so that only a
// few have to be in memory.
func (t *traversal) rows(f *readField, spans []source.Span, located []located) error {
	t.start(f, spans, located)
	scalar := len(f.field.Levels) == 1 && !f.field.Packed() && f.varying == 0
	values := f.field.Values()
	buffer := values.Buffer()
	for i := range spans {
		switch l := &located[i]; {
		case t.encoded && t.table.encoded(l.batch):
			t.order = append(t.order, inOrder(l.batch, i))
		case scalar && (l.base != 0 || t.table.Store == nil):
			if err := t.scalar(i, l, values, buffer); err != nil {
				return err
			}
		default:
			t.begin(int32(i))
		}
	}
	if err := t.descend(); err != nil {
		return err
	}
	return t.decodeEach(false, t.begin, t.descend)
}

// start prepares for the rows of some spans.
func (t *traversal) start(f *readField, spans []source.Span, located []located) {
	t.readField, t.spans, t.located, t.decoded = f, spans, located, nil
	t.runs, t.begun, t.order, t.batch = t.runs[:0], t.begun[:0], t.order[:0], -1
	if f.varying > 0 {
		t.elements = slices.Grow(t.elements[:0], len(spans))[:len(spans)]
	}
}

// inOrder returns the entry of a span in traversal.order.
func inOrder(batch int32, span int) uint64 { return uint64(batch)<<32 | uint64(span) }

// decodeEach decodes the batches of the ordered spans, and calls do for the rows of each, which begin has
// begun. If lists is true, it leaves out values.
func (t *traversal) decodeEach(lists bool, begin func(span int32), do func() error) error {
	if len(t.order) == 0 {
		return nil
	}
	slices.Sort(t.order)
	t.batches = t.batches[:0]
	for _, entry := range t.order {
		if batch := int32(entry >> 32); len(t.batches) == 0 || t.batches[len(t.batches)-1] != batch {
			t.batches = append(t.batches, batch)
		}
	}
	from := 0
	return t.table.Units.Decode(t.ctx, t.batches, t.number, lists, func(i int, decoded *buffers.Decoded) error {
		t.decoded, t.runs, t.begun = decoded, t.runs[:0], t.begun[:0]
		t.held += decoded.Bytes
		for ; from < len(t.order) && int32(t.order[from]>>32) == t.batches[i]; from++ {
			begin(int32(t.order[from]))
		}
		err := do()
		t.decoded, t.data.Bytes = nil, nil // so that the memory can be freed
		clear(t.bytes)
		clear(t.found)
		return err
	})
}

// scalar sets row i if rows are single values in memory. It is the fast way for
// them, because it needs no run.
func (t *traversal) scalar(i int, l *located, values arrowtype.Values, buffer arrowtype.Buffer) (err error) {
	plane := &t.column.Planes[0]
	at := l.row + plane.ShiftOf(l.batch)
	if valid := plane.ValidOf(l.batch); valid >= 0 && bytesAt(l.base+uintptr(valid+at>>3), 1)[0]>>(at&7)&1 == 0 {
		return nil
	}
	t.useBatch(l.batch)
	from, length := buffer.Bytes(at, 1)
	t.data.Bytes = bytesAt(l.base+uintptr(plane.Data[l.batch]+from), length)
	if t.spans[i].Row, err = values.Row(&t.data, 1); err != nil {
		return t.failed(&run{span: int32(i), batch: l.batch}, 0, err)
	}
	return nil
}

// useBatch sets data.Dictionary to the dictionary of a record batch, if the column
// has dictionaries.
func (t *traversal) useBatch(batch int32) {
	if batch != t.batch && t.column.Dictionaries != nil {
		t.batch, t.data.Dictionary = batch, t.column.DictionaryOf(batch)
	}
}

// begin adds the first run of a row.
func (t *traversal) begin(span int32) {
	l := &t.located[span]
	t.runs = append(t.runs, run{span, l.batch, l.row, 1, 0})
	t.begun = append(t.begun, span)
}

// descend replaces the runs level by level, from rows down to values, then sets
// the rows.
func (t *traversal) descend() error {
	if len(t.runs) == 0 {
		return nil
	}
	t.gaps = t.gaps[:0]
	for n := range t.field.Levels {
		if err := t.enter(n); err != nil {
			return err
		}
		if n == len(t.field.Levels)-1 {
			break
		}
		children := t.children
		if n >= t.field.Structs() && n < t.field.Structs()+t.varying {
			children = t.ragged
		}
		if err := children(n); err != nil {
			return err
		}
	}
	if t.field.HasTexts() {
		return t.texts(len(t.field.Levels) - 1)
	}
	if err := t.values(len(t.field.Levels) - 1); err != nil {
		return err
	}
	t.empty()
	t.markNulls()
	return nil
}

// enter prepares the runs of a level: it skips the elements in front of the buffers, and
// divides the runs at nulls.
func (t *traversal) enter(n int) error {
	outer := t.field.Structs()
	if n > outer && n < outer+t.varying {
		t.innerLists(n)
	}
	if shift := t.column.Planes[n].Shift; shift != nil {
		for i := range t.runs {
			t.runs[i].start += shift[t.runs[i].batch]
		}
	}
	if n == outer && outer > 0 {
		t.present() // the struct of these rows is not null
	}
	if err := t.dropNulls(n); err != nil {
		return err
	}
	if n == outer && outer > 0 {
		if err := t.complete(); err != nil {
			return err
		}
	}
	if n == outer && t.varying > 0 {
		t.present()
	}
	return nil
}

// dropNulls divides the runs of a level at its nulls.
func (t *traversal) dropNulls(n int) error {
	if t.field.Null(n) {
		t.allNull(n)
		return nil
	}
	positions, decoded := t.column.Planes[n].Valid, []byte(nil)
	if t.decoded != nil {
		decoded = t.decoded.Levels[n].Valid
	}
	if t.decoded == nil && positions == nil || t.decoded != nil && decoded == nil {
		return nil
	}
	if err := t.fetch(positions, decoded, arrowtype.Buffer{Bits: 1}); err != nil {
		return err
	}
	each := t.eachNull(n)
	t.next = t.next[:0]
	for i, r := range t.runs {
		bits, first := t.bytes[i], r.start&7
		if bits == nil || allSet(bits, first, r.count) {
			t.next = append(t.next, r)
			continue
		}
		end := int64(0) // where the previous run ends within r
		setRuns(bits, first, r.count, func(from, count int64) {
			t.null(r, end, from, each)
			t.next = append(t.next, run{r.span, r.batch, r.start + from, count, r.at + from})
			end = from + count
		})
		t.null(r, end, r.count, each)
	}
	t.runs, t.next = t.next, t.runs
	return nil
}

// eachNull returns how many elements of the array a null of a level holds.
func (t *traversal) eachNull(n int) int64 {
	if n < t.field.Structs()+t.varying {
		return 0 // a null list of a ragged level has none
	}
	return t.field.Elements(n)
}

// allNull drops all runs of a level of nulls.
func (t *traversal) allNull(n int) {
	for _, r := range t.runs {
		t.null(r, 0, r.count, t.eachNull(n))
	}
	if n < t.field.Structs()+t.varying {
		t.restart() // no lists of this level have elements
	}
	t.runs = t.runs[:0]
}

// null records that the elements [from, to) of a run are null. Each is how many
// elements of the array one of them holds.
func (t *traversal) null(r run, from, to, each int64) {
	if from < to && each > 0 {
		t.gaps = append(t.gaps, gap{r.span, (r.at + from) * each, (r.at + to) * each})
	}
}

// children replaces the runs of lists by runs of the lists' elements.
func (t *traversal) children(n int) error {
	list := t.field.List(n)
	buffer := list.Buffer()
	if err := t.fetchData(n, buffer); err != nil {
		return err
	}
	size := int64(list.Length())
	for i := range t.runs {
		r, data := &t.runs[i], []byte(nil)
		if buffer.Bits > 0 {
			data = t.bytes[i]
		}
		first, count, err := list.Children(r.start, r.count, data)
		if err == nil && !list.Direct() {
			if length := t.length(n+1, r.batch); first < 0 || first > length-count {
				err = fmt.Errorf("its list begins at element %d of %d", first, length)
			}
		}
		if err != nil {
			return t.failed(r, n, err)
		}
		r.start, r.count, r.at = first, count, r.at*size
	}
	return nil
}

// failed returns the error for a run with invalid content at level n.
func (t *traversal) failed(r *run, n int, err error) error {
	record := t.spans[r.span].Record
	if length, ok := errors.AsType[*arrowtype.LengthError](err); ok {
		return t.table.named(r.batch, (&Uneven{t.field, record, n, length.Length}).Status())
	}
	return t.table.damaged(t.number, r.batch, record, err)
}

// values sets the rows. A row is used in place if its values are contiguous in memory. But
// rows of more decoded batches than Table.Held are copied, because rows in place would keep
// all of them in memory.
func (t *traversal) values(n int) error {
	values := t.field.Values()
	buffer := values.Buffer()
	if err := t.fetchData(n, buffer); err != nil {
		return err
	}
	each := t.field.Elements(n)
	size := each * int64(t.field.Type.Size())
	d := &t.data
	for i := range t.runs {
		r := &t.runs[i]
		t.useBatch(r.batch)
		span, row := &t.spans[r.span], t.rowElements(r.span)
		d.Bytes, d.Bit = t.bytes[i], r.start*buffer.Bits&7
		if r.count*each == int64(row) && (t.decoded == nil || t.held <= t.table.Held) {
			var err error
			if span.Row, err = values.Row(d, r.count); err != nil {
				return t.failed(r, n, err)
			}
			if span.Row != nil {
				continue
			}
		}
		if span.Row == nil {
			span.Row = t.scratch.take(row * t.field.Type.Size())
		}
		if err := values.Copy(span.Row[r.at*size:(r.at+r.count)*size], d, r.count); err != nil {
			return t.failed(r, n, err)
		}
	}
	return nil
}

// markNulls sets Nulls of the rows that are partly null. A row of nulls alone has no
// Nulls, because its Row is nil.
func (t *traversal) markNulls() {
	for _, g := range t.gaps {
		span := &t.spans[g.span]
		if span.Row == nil {
			continue
		}
		if span.Nulls == nil {
			span.Nulls = t.nulls.take(t.rowElements(g.span))
		}
		for i := g.from; i < g.to; i++ {
			span.Nulls[i] = true
		}
	}
}

// fetchData sets t.bytes to the bytes of every run in the data buffer of level n,
// if the level has one.
func (t *traversal) fetchData(n int, buffer arrowtype.Buffer) error {
	switch {
	case buffer.Bits == 0:
		return nil
	case t.decoded != nil:
		return t.fetch(nil, t.decoded.Levels[n].Data, buffer)
	}
	return t.fetch(t.column.Planes[n].Data, nil, buffer)
}

// fetch sets t.bytes to the bytes of every run in one buffer. Positions holds the
// buffer's position in every batch. It is negative if the batch has no such buffer;
// the bytes are then nil. If the batch was compressed, decoded is the buffer.
func (t *traversal) fetch(positions []int64, decoded []byte, buffer arrowtype.Buffer) error {
	if cap(t.bytes) < len(t.runs) {
		t.bytes = make([][]byte, len(t.runs))
	}
	t.bytes, t.wanted, t.pieces = t.bytes[:len(t.runs)], t.wanted[:0], t.pieces[:0]
	for i := range t.runs {
		r := &t.runs[i]
		from, length := buffer.Bytes(r.start, r.count)
		if t.decoded != nil {
			if from > int64(len(decoded))-length {
				return t.failed(r, 0, fmt.Errorf("its values lie beyond %d bytes", len(decoded)))
			}
			t.bytes[i] = decoded[from : from+length]
			continue
		}
		position := positions[r.batch]
		base := t.located[r.span].base
		switch {
		case position < 0:
			t.bytes[i] = nil
		case length == 0:
			t.bytes[i] = none
		case base != 0 || t.table.Store == nil:
			t.bytes[i] = bytesAt(base+uintptr(position+from), length)
			if length <= 64 { // the values of rows are prefetched when they are copied
				gather.Prefetch(base + uintptr(position+from))
			}
		default:
			t.wanted = append(t.wanted, i)
			t.pieces = append(t.pieces, resident.Span{File: int(t.table.file(r.batch)), Offset: position + from, Length: int(length)})
		}
	}
	return t.acquire(t.bytes)
}

// acquire sets the wanted elements of a list to the bytes of the pieces.
func (t *traversal) acquire(to [][]byte) error {
	if len(t.pieces) == 0 {
		return nil
	}
	if cap(t.addresses) < len(t.pieces) {
		t.addresses = make([]uintptr, len(t.pieces))
	}
	t.addresses = t.addresses[:len(t.pieces)]
	lease, err := t.table.Store.Acquire(t.ctx, t.pieces, t.addresses)
	if err != nil {
		return err
	}
	t.leases = append(t.leases, lease)
	for k, i := range t.wanted {
		to[i] = bytesAt(t.addresses[k], int64(t.pieces[k].Length))
	}
	return nil
}

// length returns the number of elements of a level in a record batch.
func (t *traversal) length(n int, batch int32) int64 {
	if t.decoded != nil {
		return t.decoded.Levels[n].Length
	}
	return t.column.Planes[n].Length[batch]
}
