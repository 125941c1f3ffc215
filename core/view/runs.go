package view

import (
	"bytes"
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// runRecords is how many records eachRun reads at a time. Of text it reads fewer, because a
// reader of it keeps all rows.
const (
	runRecords = 1 << 16
	runTexts   = 1 << 12
)

// eachRun calls add for every run of records whose rows of a field are equal.
func eachRun(ctx context.Context, src source.Source, name string, add func(start, stop int64)) error {
	schema := src.Schema()
	n, err := schema.Find(name)
	if err != nil {
		return err
	}
	f := schema.Fields[n]
	if f.Ragged > 1 || f.Ragged == 1 && !f.IsText() && !f.IsBytes() {
		return status.Errorf(status.Unsupported, "view", "field %q has rows of type %s, so windows cannot be within its values", name, f.TypeString()).
			WithHint("use a field of numbers or of text")
	}
	if f.Nullable {
		return status.Errorf(status.InvalidArgument, "view", "field %q may hold nulls, so windows cannot be within its values", name).
			WithHint("use a field without nulls")
	}
	found := runs{add: add}
	if f.Ragged == 1 {
		err = found.texts(ctx, src, n)
	} else {
		err = found.fixed(ctx, src, n)
	}
	if err == nil {
		add(found.start, src.Len())
	}
	return err
}

// runs finds where the rows of a field change.
type runs struct {
	add      func(start, stop int64)
	start    int64  // of the present run
	previous []byte // the row before; nil before the first one
}

// next adds the run before a record if its row is another one. The row must not change until
// the next call of keep.
func (r *runs) next(record int64, row []byte) {
	if r.previous != nil && !bytes.Equal(row, r.previous) {
		r.add(r.start, record)
		r.start = record
	}
	r.previous = row
}

// keep copies the last row, because the memory of the rows is used again.
func (r *runs) keep() { r.previous = append([]byte{}, r.previous...) }

// fixed reads a field whose rows have one shape.
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
		if err := g.Gather(ctx, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: chunk}}); err != nil {
			return err
		}
		for k, record := range records {
			r.next(record, chunk[k*width:(k+1)*width])
		}
		r.keep()
	}
	return nil
}

// texts reads a field of text or bytes.
func (r *runs) texts(ctx context.Context, src source.Source, n int) (err error) {
	reader, err := src.Reader([]int{n})
	if err != nil {
		return err
	}
	defer func() {
		if e := reader.Close(); err == nil {
			err = e
		}
	}()
	spans := make([]source.Span, 0, runTexts)
	for from := int64(0); from < src.Len(); from += runTexts {
		spans = spans[:0]
		for record := from; record < min(from+runTexts, src.Len()); record++ {
			spans = append(spans, source.Span{Field: n, Record: record})
		}
		err := reader.Read(ctx, spans, func() error {
			for i := range spans {
				r.next(spans[i].Record, spans[i].Row)
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
