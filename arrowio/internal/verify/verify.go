// Package verify reads a whole dataset of files and reports the first damage. It checks the
// files by their formats, several at a time, and then gathers every row of the table over them.
// It also hashes every byte of the files.
package verify

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Run verifies the files, at most limit at a time, and then gathers the fixed fields of the
// table over them. Progress is called with the bytes that are done, out of the size of all
// files.
func Run(ctx context.Context, files *units.Files, limit int, over *table.Table, progress func(done int64)) error {
	v := verifier{ctx: ctx, table: over, fixed: over.Schema.Fixed(), progress: progress}
	total := files.Bytes()
	for _, number := range v.fixed {
		v.width += over.Schema.Fields[number].RowBytes()
	}
	v.rowed = total // rows of compressed files take more bytes
	if rows := float64(v.width) * float64(over.Index.Len()); rows < float64(total) {
		v.rowed = int64(rows)
	}
	if err := v.files(files, limit, total); err != nil {
		return err
	}
	progress(total - v.rowed)
	return v.rows(total - v.rowed)
}

type verifier struct {
	ctx      context.Context
	table    *table.Table
	fixed    []int // fields of the table
	width    int   // bytes of the fixed fields of a record
	rowed    int64 // bytes of the files that rows reads, about; files reads the others
	progress func(done int64)
}

// files verifies the files. Its share of the progress is what rows leaves.
func (v *verifier) files(files *units.Files, limit int, total int64) error {
	var mu sync.Mutex
	read, share := int64(0), float64(total-v.rowed)/float64(max(total, 1))
	progress := func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		read += bytes
		v.progress(int64(float64(read) * share))
	}
	return guard.Parallel(context.Background(), "arrowio", len(files.List), limit, func(i int) error {
		f, gathered := files.List[i], []int(nil) // columns that rows reads
		for _, field := range v.fixed {
			number, _ := f.Column(files.Fields[field])
			gathered = append(gathered, number)
		}
		err := f.Contents.Verify(v.ctx, gathered, progress)
		if changed := f.Content.Check(); changed != nil {
			return changed // the change may explain err
		}
		return f.Named(err)
	})
}

// gatheredBytes is the approximate size of one gather.
const gatheredBytes = 8 << 20

// rows gathers every row of the fixed fields.
func (v *verifier) rows(done int64) error {
	fields, n, width := v.fixed, v.table.Index.Len(), v.width
	parts := make([]source.Part, len(fields))
	for i, number := range fields {
		parts[i] = v.table.Schema.Whole(number)
	}
	if width == 0 {
		return nil // empty rows need no gather, and a dataset may have 2^40 of them
	}
	if width > gatheredBytes {
		if err := v.first(); err != nil {
			return err
		}
	}
	g, err := v.table.Gatherer(parts)
	if err != nil {
		return err
	}
	defer g.Close()
	step := min(n, int64(max(1, gatheredBytes/width)), 1<<16)
	records, buffer, jobs := make([]int64, step), make([]byte, int(step)*width), make([]source.Job, len(fields))
	for from := int64(0); from < n; from += step {
		m, rest := int(min(step, n-from)), buffer
		for i := range m {
			records[i] = from + int64(i)
		}
		for i, number := range fields {
			size := m * v.table.Schema.Fields[number].RowBytes()
			jobs[i], rest = source.Job{Part: i, Rows: [2]int{0, m}, Dst: rest[:size]}, rest[size:]
		}
		if err := g.Gather(v.ctx, source.Draw{}, records[:m], jobs); err != nil {
			return err
		}
		v.progress(done + int64(float64(v.rowed)*float64(from+int64(m))/float64(n)))
	}
	return nil
}

// first finds one record of every unit without copying it. If metadata declare longer rows
// than the data have, it fails before memory is taken for such a row.
func (v *verifier) first() error {
	r, err := v.table.Reader(v.fixed)
	if err != nil {
		return err
	}
	defer r.Close()
	spans, index := make([]source.Span, len(v.fixed)), v.table.Index
	for record := int64(0); record < index.Len(); {
		for i, field := range v.fixed {
			spans[i] = source.Span{Field: field, Record: record}
		}
		if err := r.Read(v.ctx, source.Draw{}, spans, func() error { return nil }); err != nil {
			return err
		}
		batch, _ := index.Locate(record)
		record = index.First(record) + index.Rows(int(batch))
	}
	return nil
}
