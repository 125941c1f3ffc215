package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// runRecords is how many records eachRun reads at a time. A reader of rows reads fewer,
// because it may keep them all.
const (
	runRecords = 1 << 16
	runRows    = 1 << 12
)

// eachRun calls add for every run of records with equal rows of a field. Row is that
// row; later calls reuse its memory. Floats are equal as by ==, and NaN equals NaN.
func eachRun(ctx context.Context, src source.Source, name string, add func(start, stop int64, row []byte)) error {
	schema := src.Schema()
	n, err := schema.Find(name)
	if err != nil {
		return err
	}
	f := schema.Fields[n]
	found := runs{add: add}
	if f.Ragged > 0 || f.Nullable {
		err = found.rows(ctx, src, n)
	} else {
		err = found.fixed(ctx, src, n)
	}
	if err == nil && src.Len() > 0 {
		add(found.start, src.Len(), found.previous)
	}
	return err
}

// runs finds where the rows of a field change.
type runs struct {
	add      func(start, stop int64, row []byte)
	start    int64  // start of the present run
	previous []byte // the row before; nil before the first one
}

// next adds the run before a record if its row is another one. The row must not change until
// the next call of keep.
func (r *runs) next(record int64, row []byte) {
	if r.previous != nil && !bytes.Equal(row, r.previous) {
		r.add(r.start, record, r.previous)
		r.start = record
	}
	r.previous = row
}

// keep copies the last row, because the memory of the rows is used again.
func (r *runs) keep() { r.previous = append([]byte{}, r.previous...) }

// fixed reads a field without nulls. All its rows have one shape.
func (r *runs) fixed(ctx context.Context, src source.Source, n int) (err error) {
	g, err := src.Gatherer([]source.Part{src.Schema().Whole(n)})
	if err != nil {
		return err
	}
	defer func() {
		if e := g.Close(); err == nil {
			err = e
		}
	}()
	width := src.Schema().Fields[n].RowBytes()
	records, rows := make([]int64, 0, runRecords), make([]byte, width*runRecords)
	for from := int64(0); from < src.Len(); from += runRecords {
		records = records[:0]
		for record := from; record < min(from+runRecords, src.Len()); record++ {
			records = append(records, record)
		}
		chunk := rows[:width*len(records)]
		if err := g.Gather(ctx, source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: chunk}}); err != nil {
			return err
		}
		unifyFloats(src.Schema().Fields[n].Type, chunk)
		for k, record := range records {
			r.next(record, chunk[k*width:(k+1)*width])
		}
		r.keep()
	}
	return nil
}

// rows reads a field of any kind. A null is an error.
func (r *runs) rows(ctx context.Context, src source.Source, n int) (err error) {
	reader, err := src.Reader([]int{n})
	if err != nil {
		return err
	}
	defer func() {
		if e := reader.Close(); err == nil {
			err = e
		}
	}()
	spans := make([]source.Span, 0, runRows)
	for from := int64(0); from < src.Len(); from += runRows {
		spans = spans[:0]
		for record := from; record < min(from+runRows, src.Len()); record++ {
			spans = append(spans, source.Span{Field: n, Record: record})
		}
		err := reader.Read(ctx, source.Draw{}, spans, func() error {
			for i := range spans {
				span := &spans[i]
				if span.Null() || span.Nulls != nil || slices.ContainsFunc(span.Lists, hasNull) {
					return status.Errorf(status.InvalidArgument, "view", "field %q: record %d holds a null, so records cannot be grouped by its values", src.Schema().Fields[n].Name, span.Record).
						WithHint("use a field without nulls, or leave out these records (Go: view.FilterFunc; Python: ds.filter)").With("record", span.Record)
				}
				row := withLists(span)
				if at := len(row) - len(span.Row); infinities[src.Schema().Fields[n].Type].size != 0 {
					row = slices.Clone(row) // the row of a span may be memory of a file
					unifyFloats(src.Schema().Fields[n].Type, row[at:])
				}
				r.next(span.Record, row)
			}
			r.keep()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// infinities has the bits of +Inf by type, and the bytes of a float.
var infinities = map[dtype.Type]struct {
	bits uint64
	size int
}{
	dtype.Float16: {0x7c00, 2}, dtype.BFloat16: {0x7f80, 2},
	dtype.Float32: {0x7f80_0000, 4}, dtype.Complex64: {0x7f80_0000, 4},
	dtype.Float64: {0x7ff0 << 48, 8}, dtype.Complex128: {0x7ff0 << 48, 8},
}

// unifyFloats changes floats that count as equal to the same bytes: -0.0 becomes 0.0, and every
// NaN becomes one of them. Values of other types stay.
func unifyFloats(t dtype.Type, values []byte) {
	inf := infinities[t]
	if inf.size == 0 {
		return
	}
	var float [8]byte
	for value := range slices.Chunk(values, inf.size) {
		copy(float[:], value)
		bits := binary.LittleEndian.Uint64(float[:])
		switch magnitude := bits &^ (1 << (8*inf.size - 1)); {
		case magnitude == 0:
			clear(value)
		case magnitude > inf.bits:
			copy(value, binary.LittleEndian.AppendUint64(nil, inf.bits+1))
		}
	}
}

// hasNull reports whether one of the lists with these lengths is null.
func hasNull(lengths []int64) bool { return slices.Contains(lengths, -1) }

// withLists returns a row after the lengths of its inner lists, which tell apart rows of the
// same values. A row without inner lists is not copied.
func withLists(span *source.Span) []byte {
	if len(span.Lists) == 0 {
		return span.Row
	}
	var b []byte
	for _, lengths := range span.Lists {
		for _, n := range lengths {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	return append(b, span.Row...)
}
