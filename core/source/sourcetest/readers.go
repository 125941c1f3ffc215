package sourcetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// fixed returns the numbers of the fixed fields. Only these can be gathered.
func (r *run) fixed() []int { return r.src.Schema().Fixed() }

// all returns the numbers of all fields.
func (r *run) all() []int {
	list := make([]int, len(r.src.Schema().Fields))
	for i := range list {
		list[i] = i
	}
	return list
}

// reader opens a reader, or fails the test if the source rejects the fields.
func (r *run) reader(fields ...int) source.Reader {
	r.Helper()
	reader, err := r.src.Reader(fields)
	if err != nil {
		r.Fatalf("Reader(%v): %v", fields, err)
	}
	r.Cleanup(func() { _ = reader.Close() })
	return reader
}

// row is a copy of a row that a reader read.
type row struct {
	null     bool
	elements []byte
	nulls    []bool
	lists    [][]int64
}

// readRows reads the rows of all records, for each of some fields.
func (r *run) readRows(ctx context.Context, reader source.Reader, fields []int, records []int64) (rows [][]row, err error) {
	var spans []source.Span
	for _, field := range fields {
		for _, record := range records {
			spans = append(spans, source.Span{Field: field, Record: record})
		}
	}
	err = reader.Read(ctx, r.Draw, spans, func() error {
		for i := range spans {
			s := &spans[i]
			if k := i / len(records); s.Field != fields[k] || s.Record != records[i%len(records)] {
				return fmt.Errorf("span %d is field %d of record %d", i, s.Field, s.Record)
			}
			if i%len(records) == 0 {
				rows = append(rows, nil)
			}
			one := row{null: s.Null(), elements: bytes.Clone(s.Row), nulls: slices.Clone(s.Nulls)}
			for _, list := range s.Lists {
				one.lists = append(one.lists, slices.Clone(list))
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], one)
		}
		return nil
	})
	return rows, err
}

// sameRows compares the rows of two reads.
func sameRows(a, b [][]row) bool {
	return slices.EqualFunc(a, b, func(x, y []row) bool {
		return slices.EqualFunc(x, y, func(x, y row) bool {
			return x.null == y.null && bytes.Equal(x.elements, y.elements) && slices.Equal(x.nulls, y.nulls) && slices.EqualFunc(x.lists, y.lists, slices.Equal)
		})
	})
}

// existing returns random records that exist: up to n, and no more than three times as
// many as there are.
func (r *run) existing(n int) []int64 {
	records := make([]int64, min(int64(n), 3*r.src.Len()))
	for i := range records {
		records[i] = r.random.Int64N(r.src.Len())
	}
	return records
}

// readers compares the rows that a reader reads of all fields at once with gathered
// rows, and checks that ragged rows agree with their lengths.
func (r *run) readers() {
	fields, records := r.all(), r.existing(40)
	if len(records) == 0 || len(fields) == 0 {
		return // no rows
	}
	reader := r.reader(fields...)
	reader.Ahead(r.Draw, append([]int64{-1, r.src.Len()}, records...))
	r.random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	rows, err := r.readRows(context.Background(), reader, fields, records)
	if err != nil {
		r.Fatal(err)
	}
	for k, field := range fields {
		if f := r.src.Schema().Fields[field]; f.Ragged == 0 {
			r.compareFixed(field, f, records, rows[k])
			r.compareLengths(reader, field, f, records, rows[k])
		} else {
			r.compareRagged(reader, field, f, records, rows[k])
		}
	}
}

// compareFixed compares rows of a fixed field with gathers that put 0 or 1 in place of
// nulls.
func (r *run) compareFixed(field int, f source.Field, records []int64, rows []row) {
	zeros, width, size := r.whole(field), f.RowBytes(), f.Type.Size()
	ones := zeros
	if f.Nullable {
		if ones.Fill = int64(1); f.Type == dtype.Bool {
			ones.Fill = true
		}
	}
	allZeros, allOnes := r.read(r.gatherer(zeros), width, records), r.read(r.gatherer(ones), width, records)
	for i, record := range records {
		zero, one := allZeros[i*width:(i+1)*width], allOnes[i*width:(i+1)*width]
		nulls := 0
		for at := 0; at < width; at += size {
			null := !bytes.Equal(zero[at:at+size], one[at:at+size])
			if null {
				nulls++
			}
			if null != (rows[i].null || rows[i].nulls != nil && rows[i].nulls[at/size]) {
				r.Fatalf("field %q, record %d: null %v at element %d, %+v was read", f.Name, record, null, at/size, rows[i])
			}
			if !null && !bytes.Equal(zero[at:at+size], rows[i].elements[at:at+size]) {
				r.Fatalf("field %q, record %d: %x was gathered, %x was read", f.Name, record, zero, rows[i].elements)
			}
		}
		switch {
		case rows[i].null != (nulls > 0 && nulls*size == width) && (rows[i].null || !f.Lists):
			r.Fatalf("field %q, record %d: %d nulls, %+v was read", f.Name, record, nulls, rows[i])
		case !rows[i].null && len(rows[i].elements) != width, nulls == 0 && rows[i].nulls != nil, rows[i].lists != nil:
			r.Fatalf("field %q, record %d: %+v was read", f.Name, record, rows[i])
		}
	}
}

// compareLengths compares the lengths of rows of one shape with the rows.
func (r *run) compareLengths(reader source.Reader, field int, f source.Field, records []int64, rows []row) {
	lengths := make([]int64, len(records))
	err := source.RowLengths(context.Background(), r.Draw, reader, f, field, records, lengths)
	if len(f.Shape) == 0 {
		r.expect(err, status.InvalidArgument, "the lengths of single values")
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	for i, length := range lengths {
		if null := length == -1; null != rows[i].null || !null && length != int64(f.Shape[0]) {
			r.Fatalf("field %q, record %d: length %d, %+v was read", f.Name, records[i], length, rows[i])
		}
	}
}

// compareRagged compares rows of a ragged field with their lengths, and with the
// reference.
func (r *run) compareRagged(reader source.Reader, field int, f source.Field, records []int64, rows []row) {
	lengths := make([]int64, len(records))
	if err := reader.Lengths(context.Background(), r.Draw, field, records, lengths); err != nil {
		r.Fatal(err)
	}
	for i, record := range records {
		got := rows[i]
		if got.null {
			if lengths[i] != -1 || got.elements != nil || got.nulls != nil || got.lists != nil {
				r.Fatalf("field %q, record %d: length %d, %+v was read", f.Name, record, lengths[i], got)
			}
			continue
		}
		n := lengths[i]
		if len(got.lists) != f.Ragged-1 {
			r.Fatalf("field %q, record %d: %d lists of lengths in %d ragged dimensions", f.Name, record, len(got.lists), f.Ragged)
		}
		for _, list := range got.lists {
			if int64(len(list)) != n {
				r.Fatalf("field %q, record %d: %v do not belong to %d lists", f.Name, record, got.lists, lengths[i])
			}
			n = 0
			for _, length := range list {
				n += max(length, 0)
			}
		}
		if int64(len(got.elements)) != n*int64(f.RowBytes()) || got.nulls != nil && len(got.nulls)*f.Type.Size() != len(got.elements) {
			r.Fatalf("field %q, record %d: %d elements are expected, %+v was read", f.Name, record, n, got)
		}
		if r.Ragged != nil {
			want := source.Span{Field: field, Record: record}
			r.Ragged(&want)
			if !bytes.Equal(want.Row, got.elements) || !slices.Equal(want.Nulls, got.nulls) || !slices.EqualFunc(want.Lists, got.lists, slices.Equal) {
				r.Fatalf("field %q, record %d: %+v instead of %+v", f.Name, record, got, want)
			}
		}
	}
}

// badReads checks that a reader rejects records outside the source, fields that it does
// not have, and lengths of fixed fields, and that it stops with its context.
func (r *run) badReads() {
	n := len(r.src.Schema().Fields)
	for _, bad := range []int{-1, n} {
		_, err := r.src.Reader([]int{bad})
		r.expect(err, status.InvalidArgument, fmt.Sprintf("a reader of field %d of %d", bad, n))
	}
	none := func() error { return nil }
	if err := r.reader().Read(context.Background(), r.Draw, nil, none); err != nil {
		r.Errorf("a read of no rows: %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for field, f := range r.src.Schema().Fields {
		reader := r.reader(field)
		for _, bad := range []int64{-1, r.src.Len(), -1 << 62, 1 << 62} {
			err := reader.Read(context.Background(), r.Draw, []source.Span{{Field: field, Record: bad}}, none)
			r.expect(err, status.OutOfRange, fmt.Sprintf("a read of record %d", bad))
			if f.HasLengths() {
				err = reader.Lengths(context.Background(), r.Draw, field, []int64{bad}, make([]int64, 1))
				r.expect(err, status.OutOfRange, fmt.Sprintf("the length of record %d", bad))
			}
		}
		if r.src.Len() == 0 {
			continue
		}
		one := []source.Span{{Field: field}}
		r.expect(reader.Read(cancelled, r.Draw, one, none), status.Cancelled, "a cancelled read")
		if !f.HasLengths() {
			r.expect(reader.Lengths(context.Background(), r.Draw, field, []int64{0}, make([]int64, 1)), status.InvalidArgument, "the length of a fixed row")
		} else {
			r.expect(reader.Lengths(cancelled, r.Draw, field, []int64{0}, make([]int64, 1)), status.Cancelled, "a cancelled length")
		}
		if n > 1 {
			other := []source.Span{{Field: (field + 1) % n}}
			r.expect(reader.Read(context.Background(), r.Draw, other, none), status.InvalidArgument, "a read of another field")
		}
		failure := fmt.Errorf("the rows are not wanted")
		clear(one)
		one[0].Field = field
		if err := reader.Read(context.Background(), r.Draw, one, func() error { return failure }); err != failure {
			r.Errorf("the error of use became %v", err)
		}
	}
}

// concurrentReads checks that reads of one reader on several goroutines return the
// right rows.
func (r *run) concurrentReads() {
	fields, records := r.all(), r.existing(30)
	if len(records) == 0 || len(fields) == 0 {
		return // no rows
	}
	reader := r.reader(fields...)
	want, err := r.readRows(context.Background(), reader, fields, records)
	if err != nil {
		r.Fatal(err)
	}
	results := make(chan error, 4)
	for range cap(results) {
		guard.Go("sourcetest", func() error {
			for range 4 {
				reader.Ahead(r.Draw, records)
				got, err := r.readRows(context.Background(), reader, fields, records)
				if err != nil {
					return err
				}
				if !sameRows(got, want) {
					return fmt.Errorf("rows of concurrent reads are mixed up")
				}
			}
			results <- nil
			return nil
		}, func(err error) { results <- err })
	}
	for range cap(results) {
		if err := <-results; err != nil {
			r.Error(err)
		}
	}
}

// raggedGathers checks that ragged fields cannot be gathered.
func (r *run) raggedGathers() {
	for i, f := range r.src.Schema().Fields {
		if f.Ragged > 0 {
			_, err := r.src.Gatherer([]source.Part{r.whole(i)})
			r.expect(err, status.InvalidArgument, "a gatherer of a ragged field")
		}
	}
}
