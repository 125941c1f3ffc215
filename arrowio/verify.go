package arrowio

import (
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
)

// VerifyOptions select what Verify does.
type VerifyOptions struct {
	Hash bool // hash every byte of every file

	// Progress, if set, is called with the bytes done and the bytes to do: those of
	// the files, once more with Hash.
	Progress func(done, total int64)
}

// Verification describes a dataset in which Verify found no damage.
type Verification struct {
	Records     int64
	Batches     int64
	Bytes       int64 // of all files
	Fingerprint source.Fingerprint
	Columns     int         // in the first file
	Unchecked   []Unchecked // what Verify does not check of these columns
	Hash        *Hash       // nil unless VerifyOptions.Hash is set
}

// Verify reads the whole dataset. For every column and its child columns, it checks:
//
//   - all bytes can be read;
//   - the number of nulls equals the number in the metadata;
//   - offsets, views, run ends and unions refer to existing values;
//   - indices lie in their dictionary, and text is UTF-8.
//
// Verify then gathers all rows of every fixed field. A list whose length differs from
// the field's shape is an error. The error for damage names the file and the position.
// [Verification].Unchecked lists what Verify does not check.
func (d *Dataset) Verify(ctx context.Context, o VerifyOptions) (Verification, error) {
	v := verifier{d: d, ctx: ctx, o: o}
	if err := d.table.Calls.Enter(); err != nil {
		return v.report, err
	}
	defer d.table.Calls.Leave()
	var stop func()
	v.ctx, stop = d.table.Calls.Join(ctx)
	defer stop()
	return v.report, v.run()
}

type verifier struct {
	d      *Dataset
	ctx    context.Context
	o      VerifyOptions
	report Verification
	width  int   // bytes of the fixed fields of a record
	rowed  int64 // bytes of the files that rows reads, about; files reads the others
	total  int64 // bytes to read
	done   int64
}

func (v *verifier) run() (err error) {
	v.report.Records = v.d.Len()
	for _, f := range v.d.files {
		v.report.Bytes += f.content.Size()
		v.report.Batches += int64(len(f.units))
	}
	v.report.Columns = len(v.d.files[0].schema.Fields)
	for _, f := range v.d.files {
		for _, u := range f.contents.unchecked() {
			if !slices.Contains(v.report.Unchecked, u) {
				v.report.Unchecked = append(v.report.Unchecked, u)
			}
		}
	}
	for _, number := range v.d.table.Schema.Fixed() {
		v.width += v.d.table.Schema.Fields[number].RowBytes()
	}
	v.rowed = v.report.Bytes // of compressed files, whose rows take more bytes
	if rows := float64(v.width) * float64(v.report.Records); rows < float64(v.rowed) {
		v.rowed = int64(rows)
	}
	if v.total = v.report.Bytes; v.o.Hash {
		v.total = 2 * v.report.Bytes
	}
	if err := v.files(); err != nil {
		return err
	}
	v.reached(v.report.Bytes - v.rowed)
	if err := v.rows(); err != nil {
		return err
	}
	if v.o.Hash {
		hash, err := v.d.hashFiles(v.ctx, filesAtOnce(), v.progress)
		if err != nil {
			return err
		}
		v.report.Hash = &hash
	}
	v.report.Fingerprint, err = v.d.Fingerprint(v.ctx)
	return err
}

func (v *verifier) progress(bytes int64) { v.reached(v.done + bytes) }

func (v *verifier) reached(done int64) {
	if v.done = done; v.o.Progress != nil {
		v.o.Progress(v.done, v.total)
	}
}

// files verifies the files, several at a time.
func (v *verifier) files() error {
	var mu sync.Mutex
	read, share := int64(0), float64(v.report.Bytes-v.rowed)/float64(max(v.report.Bytes, 1))
	progress := func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		read += bytes
		v.reached(int64(float64(read) * share))
	}
	return parallel(len(v.d.files), func(i int) error {
		f := v.d.files[i]
		var fixed []int // columns of which rows gathers all values
		for _, field := range v.d.table.Schema.Fixed() {
			number, _ := f.columnOf(v.d.columns[field], nil)
			fixed = append(fixed, number)
		}
		err := f.contents.verify(v.ctx, fixed, progress)
		if changed := f.content.Check(); changed != nil {
			return changed // the change may explain err
		}
		return f.named(err)
	})
}

// verifyBytes is the approximate size of one gather.
const verifyBytes = 8 << 20

// rows gathers every row of the fixed fields.
func (v *verifier) rows() error {
	fields, n, width := v.d.table.Schema.Fixed(), v.d.Len(), v.width
	parts := make([]source.Part, len(fields))
	for i, number := range fields {
		parts[i] = v.d.table.Schema.Whole(number)
	}
	if width == 0 {
		return nil // empty rows need no gather, and a dataset may have 2^40 of them
	}
	if width > verifyBytes {
		if err := v.first(fields); err != nil {
			return err
		}
	}
	g, err := v.d.table.Gatherer(parts)
	if err != nil {
		return err
	}
	defer g.Close()
	step := min(n, int64(max(1, verifyBytes/width)), 1<<16)
	records, buffer, jobs := make([]int64, step), make([]byte, int(step)*width), make([]source.Job, len(fields))
	begin := v.done
	for from := int64(0); from < n; from += step {
		m, rest := int(min(step, n-from)), buffer
		for i := range m {
			records[i] = from + int64(i)
		}
		for i, number := range fields {
			size := m * v.d.table.Schema.Fields[number].RowBytes()
			jobs[i], rest = source.Job{Part: i, Rows: [2]int{0, m}, Dst: rest[:size]}, rest[size:]
		}
		if err := g.Gather(v.ctx, records[:m], jobs); err != nil {
			return err
		}
		v.reached(begin + int64(float64(v.rowed)*float64(from+int64(m))/float64(n)))
	}
	return nil
}

// first finds one record of every unit without copying it. If metadata declare longer rows
// than the data have, it fails before memory is taken for such a row.
func (v *verifier) first(fields []int) error {
	r, err := v.d.table.Reader(fields)
	if err != nil {
		return err
	}
	defer r.Close()
	spans, index := make([]source.Span, len(fields)), v.d.table.Index
	for record := int64(0); record < index.Len(); {
		for i, field := range fields {
			spans[i] = source.Span{Field: field, Record: record}
		}
		if err := r.Read(v.ctx, spans, func() error { return nil }); err != nil {
			return err
		}
		batch, _ := index.Locate(record)
		record = index.First(record) + index.Rows(int(batch))
	}
	return nil
}
