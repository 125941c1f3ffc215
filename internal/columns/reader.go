package columns

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Rows are read in chunks, so that the memory in use beside the batch is bounded. A chunk
// is larger only if one row is.
const (
	chunkRows  = 4 << 10
	chunkBytes = 4 << 20
	firstRows  = 64 // rows in the first chunk, which shows how large rows are
	gatherEach = 1 << 20
)

// Options select how batches are made. The zero value is a good default.
type Options struct {
	Wide   bool   // all offsets have 64 bits
	Memory Memory // memory for the buffers; nil for Heap
}

// Reader reads rows of some fields. It is safe for concurrent use.
type Reader struct {
	options  Options
	fields   []source.Field
	parts    []int           // by field: its part, or -1 if its rows are read as spans
	gatherer source.Gatherer // gathers the fixed fields without nulls; nil without such fields
	reader   source.Reader   // reads the other fields; nil without such fields
	numbers  []int           // numbers of the fields that are read as spans, in the schema
	rowBytes int             // bytes of a row of all gathered fields
	spans    sync.Pool       // holds *[]source.Span
	narrow   int64           // the largest offset of 32 bits
}

// New returns a reader of fields of a source, which stay in this order. A field may occur
// twice. The error is InvalidArgument for a number that is not a field's.
func New(src source.Source, fields []int, o Options) (*Reader, error) {
	schema := src.Schema()
	if err := schema.CheckFields(fields); err != nil {
		return nil, err
	}
	if o.Memory == nil {
		o.Memory = Heap{}
	}
	r := &Reader{options: o, narrow: math.MaxInt32}
	var parts []source.Part
	for _, n := range fields {
		f := schema.Fields[n]
		r.fields = append(r.fields, f)
		if f.Ragged > 0 || f.Nullable {
			r.parts, r.numbers = append(r.parts, -1), append(r.numbers, n)
			continue
		}
		r.parts, parts = append(r.parts, len(parts)), append(parts, schema.Whole(n))
		r.rowBytes += f.RowBytes()
	}
	var err error
	if len(parts) > 0 {
		if r.gatherer, err = src.Gatherer(parts); err != nil {
			return nil, err
		}
	}
	if len(r.numbers) > 0 {
		if r.reader, err = src.Reader(r.numbers); err != nil {
			return nil, cmp.Or(err, r.Close())
		}
	}
	return r, nil
}

// Fields returns the fields, in the order of the columns. The caller must not change them.
func (r *Reader) Fields() []source.Field { return r.fields }

// RowBytes returns the least that a row takes, without bitmaps.
func (r *Reader) RowBytes() int {
	n := r.rowBytes
	for i, f := range r.fields {
		switch {
		case r.parts[i] >= 0:
		case f.Ragged > 0:
			n += 4 // the offset
		default:
			n += f.RowBytes()
		}
	}
	return n
}

// Ahead announces the records of a later Read, as source.Gatherer does.
func (r *Reader) Ahead(records []int64) {
	if r.gatherer != nil {
		r.gatherer.Ahead(source.Draw{}, records)
	}
	if r.reader != nil {
		r.reader.Ahead(source.Draw{}, records)
	}
}

// Close ends readahead. No Read may run. Batches stay valid.
func (r *Reader) Close() error {
	var errs [2]error
	if r.gatherer != nil {
		errs[0] = r.gatherer.Close()
	}
	if r.reader != nil {
		errs[1] = r.reader.Close()
	}
	return cmp.Or(errs[0], errs[1])
}

// Read returns the rows of the first records of a list, as many as take about `most` bytes,
// but at least one, and all of them if most is 0. If offsets have 32 bits, it also ends
// before they are too large. The error is OutOfRange for a record that does not exist, and
// for a single row with offsets that are too large.
//
// The buffers belong to the caller. A caller with memory of its own frees them by [Batch.Free].
func (r *Reader) Read(ctx context.Context, records []int64, most int) (*Batch, error) {
	if most <= 0 {
		most = math.MaxInt
	}
	var failed error
	builders := make([]*builder, len(r.fields))
	for i, f := range r.fields {
		builders[i] = newBuilder(f, r.options.Wide, r.options.Memory, &failed)
	}
	rows, err := r.fill(ctx, builders, records, most)
	if err = cmp.Or(err, failed); err == nil {
		b := &Batch{Rows: rows}
		for _, c := range builders {
			b.Columns = append(b.Columns, c.column())
		}
		if err = failed; err == nil { // a column needs memory for its first offset
			return b, nil
		}
	}
	for _, c := range builders {
		c.free()
	}
	return nil, err
}

// Of returns a batch of rows that were read as spans: rows[i] are rows of fields[i]. All offsets have 64
// bits. The buffers belong to the caller, as after [Reader.Read].
func Of(fields []source.Field, rows [][]source.Span, m Memory) (*Batch, error) {
	var failed error
	b := &Batch{}
	builders := make([]*builder, len(fields))
	for i, f := range fields {
		builders[i] = newBuilder(f, true, m, &failed)
	}
	for i, c := range builders {
		b.Rows = len(rows[i])
		c.reserve(rows[i])
		for k := range rows[i] {
			if err := c.check(&rows[i][k], math.MaxInt64); err != nil {
				failed = err
				break
			}
			c.add(&rows[i][k])
		}
		b.Columns = append(b.Columns, c.column())
	}
	if failed == nil {
		return b, nil
	}
	for _, c := range builders {
		c.free()
	}
	return nil, failed
}

// fill adds rows to all builders, and returns their number.
func (r *Reader) fill(ctx context.Context, builders []*builder, records []int64, most int) (int, error) {
	rows := len(records)
	if r.rowBytes > 0 {
		rows = min(rows, max(1, most/r.rowBytes))
	}
	if r.reader != nil {
		var spanned []*builder
		for i, part := range r.parts {
			if part < 0 {
				spanned = append(spanned, builders[i])
			}
		}
		var err error
		if rows, err = r.read(ctx, spanned, records[:rows], most); err != nil {
			return 0, err
		}
	}
	if r.gatherer == nil {
		return rows, nil
	}
	return rows, r.gather(ctx, builders, records[:rows])
}

// read adds rows to the builders of the fields that are read as spans, chunk by chunk.
func (r *Reader) read(ctx context.Context, builders []*builder, records []int64, most int) (int, error) {
	rows, bytes, chunk := 0, 0, firstRows
	list, ok := r.spans.Get().(*[]source.Span)
	if !ok {
		list = new([]source.Span)
	}
	defer r.spans.Put(list)
	for rows < len(records) && bytes < most {
		n := min(chunk, len(records)-rows)
		spans := (*list)[:0]
		for _, field := range r.numbers {
			for _, record := range records[rows : rows+n] {
				spans = append(spans, source.Span{Field: field, Record: record})
			}
		}
		*list = spans
		added := 0
		err := r.reader.Read(ctx, source.Draw{}, spans, func() error {
			var err error
			added, err = r.add(builders, spans, n, rows, &bytes, most)
			return err
		})
		clear(spans) // they refer to memory of the source
		if err != nil {
			return 0, err
		}
		if rows += added; added < n {
			break
		}
		chunk = min(chunkRows, max(1, chunkBytes/max(1, bytes/rows)))
	}
	return rows, nil
}

// add adds up to n rows to the builders, and returns how many fit. spans has n spans for
// each builder in turn. The batch already has the given rows and bytes, including the
// gathered fields.
func (r *Reader) add(builders []*builder, spans []source.Span, n, rows int, bytes *int, most int) (int, error) {
	for i := range n {
		size := r.rowBytes
		for k, b := range builders {
			s := &spans[k*n+i]
			size += b.bytes(s)
			if err := b.check(s, r.narrow); err != nil {
				if rows+i > 0 {
					return i, nil
				}
				return 0, err
			}
		}
		if rows+i > 0 && size > most-*bytes {
			return i, nil
		}
		for k, b := range builders {
			b.add(&spans[k*n+i])
		}
		*bytes += size
	}
	return n, *builders[0].failed
}

// gather adds the rows of the fixed fields without nulls. Several goroutines gather a
// part of the rows each.
func (r *Reader) gather(ctx context.Context, builders []*builder, records []int64) error {
	dst := make([][]byte, len(r.fields))
	for i, b := range builders {
		if r.parts[i] < 0 {
			continue
		}
		n := len(records) * b.field.RowBytes()
		if t := b.field.Type; t == dtype.Bool || t == dtype.BFloat16 {
			dst[i] = make([]byte, n)
		} else if dst[i] = b.levels[len(b.levels)-1].data.extend(n); len(dst[i]) < n {
			return *b.failed
		}
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), len(records)*r.rowBytes/gatherEach, len(records)))
	errs := make([]error, workers)
	var done sync.WaitGroup
	for w := range workers - 1 {
		done.Go(func() {
			errs[w] = guard.Call("columns", func() error { return r.gatherPart(ctx, dst, records, w, workers) })
		})
	}
	errs[workers-1] = r.gatherPart(ctx, dst, records, workers-1, workers)
	done.Wait()
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	for i, b := range builders {
		if r.parts[i] >= 0 {
			b.addGathered(len(records), dst[i])
		}
	}
	return nil
}

// gatherPart gathers the rows of one of several workers.
func (r *Reader) gatherPart(ctx context.Context, dst [][]byte, records []int64, worker, workers int) error {
	from, to := len(records)*worker/workers, len(records)*(worker+1)/workers
	var jobs []source.Job
	for i, part := range r.parts {
		if part < 0 {
			continue
		}
		size := r.fields[i].RowBytes()
		jobs = append(jobs, source.Job{Part: part, Rows: [2]int{0, to - from}, Dst: dst[i][from*size : to*size]})
	}
	for _, record := range records[from:to] {
		if record < 0 { // padding to a gatherer
			return status.Errorf(status.OutOfRange, "columns", "there is no record %d", record).With("record", record)
		}
	}
	return r.gatherer.Gather(ctx, source.Draw{}, records[from:to], jobs)
}

// addGathered counts n rows with gathered values: into the buffer of the values, or
// elsewhere, if Arrow stores them otherwise.
func (b *builder) addGathered(n int, rows []byte) {
	for d := range b.levels {
		l := &b.levels[d]
		if l.Length, l.valid.valid = n, n; l.Kind == FixedList {
			n *= l.Size
		}
	}
	if t := b.field.Type; t == dtype.Bool || t == dtype.BFloat16 {
		b.levels[len(b.levels)-1].addValues(t, rows)
	}
}
