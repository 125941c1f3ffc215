package table

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// run is a range of elements of a level that belong to one row and are not
// null. A row begins as one run; nulls divide it.
type run struct {
	span         int32 // index of the row
	batch        int32
	start, count int64
	at           int64 // first element, counted from the first one of the row
}

// gap is a range of null elements of an array's row.
type gap struct {
	span     int32
	from, to int64
}

// traversal takes the rows of one field from level to level, then to their bytes.
type traversal struct {
	*readState
	*readField
	spans   []source.Span // rows of the field
	located []located     // of each span
	order   []int32       // spans in compressed batches, batch by batch

	decoded *Decoded // buffers of the only batch, if it had to be decoded
	runs    []run
	next    []run
	bytes   [][]byte // of each run
	gaps    []gap
	data    arrowtype.Data
	batch   int32 // that data.Dictionary belongs to

	wanted    []int // runs whose bytes are in pieces
	pieces    []resident.Span
	addresses []uintptr
}

// rows finds the rows of located spans. Compressed batches are done one by one,
// so that only one has to be in memory.
func (w *traversal) rows(f *readField, spans []source.Span, located []located) error {
	w.readField, w.spans, w.located, w.decoded = f, spans, located, nil
	w.runs, w.order = w.runs[:0], w.order[:0]
	scalar := len(f.field.Levels) == 1 && !f.field.Packed()
	values := f.field.Values()
	buffer := values.Buffer()
	w.batch = -1
	for i := range spans {
		switch l := &located[i]; {
		case w.encoded && w.table.encoded(l.batch):
			w.order = append(w.order, int32(i))
		case scalar && (l.base != 0 || w.table.Store == nil):
			if err := w.scalar(i, l, values, buffer); err != nil {
				return err
			}
		default:
			w.begin(int32(i))
		}
	}
	if err := w.descend(); err != nil {
		return err
	}
	slices.SortStableFunc(w.order, func(a, b int32) int { return cmp.Compare(located[a].batch, located[b].batch) })
	for from, to := 0, 0; from < len(w.order); from = to {
		batch := located[w.order[from]].batch
		w.runs = w.runs[:0]
		for ; to < len(w.order) && located[w.order[to]].batch == batch; to++ {
			w.begin(w.order[to])
		}
		var err error
		if w.decoded, err = w.table.Store.Decode(w.ctx, batch, w.number); err != nil {
			return err
		}
		if err := w.descend(); err != nil {
			return err
		}
	}
	return nil
}

// scalar sets a row of one value that is in memory, without a run.
func (w *traversal) scalar(i int, l *located, values arrowtype.Values, buffer arrowtype.Buffer) (err error) {
	plane := &w.column.Planes[0]
	at := l.row + plane.shift(l.batch)
	if valid := plane.valid(l.batch); valid >= 0 && bytesAt(l.base+uintptr(valid+at>>3), 1)[0]>>(at&7)&1 == 0 {
		return nil
	}
	w.useBatch(l.batch)
	from, length := buffer.Bytes(at, 1)
	w.data.Bytes = bytesAt(l.base+uintptr(plane.Data[l.batch]+from), length)
	if w.spans[i].Row, err = values.Row(&w.data, 1); err != nil {
		return w.failed(&run{span: int32(i), batch: l.batch}, 0, err)
	}
	return nil
}

// useBatch sets the dictionary of a record batch.
func (w *traversal) useBatch(batch int32) {
	if batch != w.batch && w.column.Dictionaries != nil {
		w.batch, w.data.Dictionary = batch, w.column.dictionary(batch)
	}
}

// begin adds the run of a row in the column.
func (w *traversal) begin(span int32) {
	l := &w.located[span]
	w.runs = append(w.runs, run{span, l.batch, l.row, 1, 0})
}

// descend takes the runs from the column to their values.
func (w *traversal) descend() error {
	if len(w.runs) == 0 {
		return nil
	}
	w.gaps = w.gaps[:0]
	for n := range w.field.Levels {
		plane := &w.column.Planes[n]
		if plane.Shift != nil {
			for i := range w.runs {
				w.runs[i].start += plane.Shift[w.runs[i].batch]
			}
		}
		if err := w.dropNulls(n); err != nil {
			return err
		}
		if n == len(w.field.Levels)-1 {
			break
		}
		if err := w.children(n); err != nil {
			return err
		}
	}
	if err := w.values(len(w.field.Levels) - 1); err != nil {
		return err
	}
	w.markNulls()
	return nil
}

// dropNulls divides the runs of a level at its nulls.
func (w *traversal) dropNulls(n int) error {
	positions, decoded := w.column.Planes[n].Valid, []byte(nil)
	if w.decoded != nil {
		decoded = w.decoded.Levels[n].Valid
	}
	if w.decoded == nil && positions == nil || w.decoded != nil && decoded == nil {
		return nil
	}
	if err := w.fetch(positions, decoded, arrowtype.Buffer{Bits: 1}); err != nil {
		return err
	}
	each := w.field.Elements(n)
	w.next = w.next[:0]
	for i, r := range w.runs {
		bits, first := w.bytes[i], r.start&7
		if bits == nil || allSet(bits, first, r.count) {
			w.next = append(w.next, r)
			continue
		}
		end := int64(0) // of the last run of this row
		setRuns(bits, first, r.count, func(from, count int64) {
			w.null(r, end, from, each)
			w.next = append(w.next, run{r.span, r.batch, r.start + from, count, r.at + from})
			end = from + count
		})
		w.null(r, end, r.count, each)
	}
	w.runs, w.next = w.next, w.runs
	return nil
}

// null notes that the elements [from, to) of a run are null.
func (w *traversal) null(r run, from, to, each int64) {
	if from < to {
		w.gaps = append(w.gaps, gap{r.span, (r.at + from) * each, (r.at + to) * each})
	}
}

// children replaces the runs of lists by those of their elements.
func (w *traversal) children(n int) error {
	list := w.field.List(n)
	buffer := list.Buffer()
	if err := w.fetchData(n, buffer); err != nil {
		return err
	}
	size := int64(list.Length())
	for i := range w.runs {
		r, data := &w.runs[i], []byte(nil)
		if buffer.Bits > 0 {
			data = w.bytes[i]
		}
		first, count, err := list.Children(r.start, r.count, data)
		if err == nil && !list.Direct() {
			if length := w.length(n+1, r.batch); first < 0 || first > length-count {
				err = fmt.Errorf("its list begins at element %d of %d", first, length)
			}
		}
		if err != nil {
			return w.failed(r, n, err)
		}
		r.start, r.count, r.at = first, count, r.at*size
	}
	return nil
}

// failed returns the error for a run whose content cannot be.
func (w *traversal) failed(r *run, n int, err error) error {
	record := w.spans[r.span].Record
	var length *arrowtype.LengthError
	if errors.As(err, &length) {
		return w.table.named(r.batch, (&Uneven{w.field, record, n, length.Length}).Status())
	}
	return w.table.damaged(w.number, r.batch, record, err)
}

// values sets the rows. A row is used where it stands if its values stand
// together in memory that outlives the traversal.
func (w *traversal) values(n int) error {
	values := w.field.Values()
	buffer := values.Buffer()
	if err := w.fetchData(n, buffer); err != nil {
		return err
	}
	each, row := w.field.Elements(n), int64(w.field.RowElements())
	size := each * int64(w.field.Type.Size())
	d := &w.data
	for i := range w.runs {
		r := &w.runs[i]
		w.useBatch(r.batch)
		span := &w.spans[r.span]
		d.Bytes, d.Bit = w.bytes[i], r.start*buffer.Bits&7
		if r.count*each == row && w.decoded == nil {
			var err error
			if span.Row, err = values.Row(d, r.count); err != nil {
				return w.failed(r, n, err)
			}
			if span.Row != nil {
				continue
			}
		}
		if span.Row == nil {
			span.Row = w.scratch.take(int(row) * w.field.Type.Size())
		}
		if err := values.Copy(span.Row[r.at*size:(r.at+r.count)*size], d, r.count); err != nil {
			return w.failed(r, n, err)
		}
	}
	return nil
}

// markNulls sets the nulls of the rows that have some, and values too.
func (w *traversal) markNulls() {
	for _, g := range w.gaps {
		span := &w.spans[g.span]
		if span.Row == nil {
			continue
		}
		if span.Nulls == nil {
			span.Nulls = w.nulls.take(w.field.RowElements())
		}
		for i := g.from; i < g.to; i++ {
			span.Nulls[i] = true
		}
	}
}

// fetchData sets w.bytes to the bytes of every run in the data buffer of a
// level, if it has one.
func (w *traversal) fetchData(n int, buffer arrowtype.Buffer) error {
	switch {
	case buffer.Bits == 0:
		return nil
	case w.decoded != nil:
		return w.fetch(nil, w.decoded.Levels[n].Data, buffer)
	}
	return w.fetch(w.column.Planes[n].Data, nil, buffer)
}

// fetch sets w.bytes to the bytes of every run in a buffer: at the positions,
// or in decoded memory. They are nil where a position is negative.
func (w *traversal) fetch(positions []int64, decoded []byte, buffer arrowtype.Buffer) error {
	if cap(w.bytes) < len(w.runs) {
		w.bytes = make([][]byte, len(w.runs))
	}
	w.bytes, w.wanted, w.pieces = w.bytes[:len(w.runs)], w.wanted[:0], w.pieces[:0]
	for i := range w.runs {
		r := &w.runs[i]
		from, length := buffer.Bytes(r.start, r.count)
		if w.decoded != nil {
			if from > int64(len(decoded))-length {
				return w.failed(r, 0, fmt.Errorf("its values lie beyond %d bytes", len(decoded)))
			}
			w.bytes[i] = decoded[from : from+length]
			continue
		}
		position := positions[r.batch]
		base := w.located[r.span].base
		switch {
		case position < 0:
			w.bytes[i] = nil
		case base != 0 || w.table.Store == nil:
			w.bytes[i] = bytesAt(base+uintptr(position+from), length)
		default:
			w.wanted = append(w.wanted, i)
			w.pieces = append(w.pieces, resident.Span{File: int(w.table.File(r.batch)), Offset: position + from, Length: int(length)})
		}
	}
	if len(w.pieces) == 0 {
		return nil
	}
	if cap(w.addresses) < len(w.pieces) {
		w.addresses = make([]uintptr, len(w.pieces))
	}
	w.addresses = w.addresses[:len(w.pieces)]
	lease, err := w.table.Store.Acquire(w.ctx, w.pieces, w.addresses)
	if err != nil {
		return err
	}
	w.leases = append(w.leases, lease)
	for k, i := range w.wanted {
		w.bytes[i] = bytesAt(w.addresses[k], int64(w.pieces[k].Length))
	}
	return nil
}

// length returns the number of elements of a level in a record batch.
func (w *traversal) length(n int, batch int32) int64 {
	if w.decoded != nil {
		return w.decoded.Levels[n].Length
	}
	return w.column.Planes[n].Length[batch]
}
