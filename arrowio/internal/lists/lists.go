// Package lists reads the offsets of the lists of a dataset, without their values: to find the
// shape of rows, and to check that all lists of a field have the same length.
package lists

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Lists are the lists of a dataset.
type Lists struct {
	files   *units.Files
	decoded *decoded.Cache
	table   *table.Table

	mu    sync.Mutex
	known map[int][2]int64 // by field: the records [start, stop) of the last check
}

// New returns the lists of the files of a table.
func New(files *units.Files, decoded *decoded.Cache, over *table.Table) *Lists {
	return &Lists{files: files, decoded: decoded, table: over, known: map[int][2]int64{}}
}

// Check implements Check of [source.Facts]. It reads the offsets of lists, 4 or 8 bytes
// for each list, from several record batches at a time. It leaves out files that store
// lists among the values, because each gather checks the rows that it reads.
func (l *Lists) Check(ctx context.Context, fields []int, start, stop int64) error {
	if err := l.table.Calls.Enter(); err != nil {
		return err
	}
	ctx, end := l.table.Calls.Join(ctx)
	defer end()
	done := make(chan error, 1) // if the disk does not answer, the goroutine stays behind
	guard.Go("arrowio", func() error {
		defer l.table.Calls.Leave()
		done <- l.check(ctx, fields, start, stop)
		return nil
	}, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return status.Ended("arrowio", "the check of the lists", ctx.Err())
	}
}

// check checks the lists of fields unless they are known to have the right length.
func (l *Lists) check(ctx context.Context, fields []int, start, stop int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, field := range fields {
		if field < 0 || field >= len(l.table.Fields) || l.table.Fields[field].Ragged > 0 || l.table.Fields[field].LastOffsets() < 0 {
			continue
		}
		if k, ok := l.known[field]; ok && k[0] <= start && stop <= k[1] {
			continue
		}
		if err := l.checkField(ctx, field, start, stop); err != nil {
			return err
		}
		l.known[field] = [2]int64{start, stop}
	}
	return nil
}

// recordsAtOnce is how many records one goroutine checks. The goroutine also checks
// the rest of the last record's batch.
const recordsAtOnce = 64 << 10

// checkField checks the lists of one field in the records [start, stop).
func (l *Lists) checkField(ctx context.Context, field int, start, stop int64) error {
	column, err := l.table.Column(field)
	if err != nil {
		return err
	}
	pieces := (stop - start + recordsAtOnce - 1) / recordsAtOnce
	return l.files.Reads.Each(int(pieces), func(piece int) error {
		from := start + int64(piece)*recordsAtOnce
		r := reader{ctx: ctx, lists: l, of: l.files.Fields[field], all: column}
		for record := from; record < min(from+recordsAtOnce, stop); {
			if err := ctx.Err(); err != nil {
				return err
			}
			batch, row := l.table.Index.Locate(record)
			rows := min(l.table.Index.Rows(int(batch))-row, stop-record)
			mixed := l.files.File(batch).Mixed
			if !mixed && (row == 0 || record == start) { // otherwise another goroutine checks the batch
				if err := r.check(batch, row, rows, record); err != nil {
					return l.files.Named(batch, err)
				}
			}
			record += rows
		}
		return nil
	})
}

// startRecords is how many records' lists are checked when a dataset is opened. Lists of
// different lengths may have as many values as lists of one length, but hardly in many
// record batches.
const startRecords = 64 << 10

// Uneven returns the reason why the lists of the first records differ in length, or "". It leaves
// damaged offsets to the gather that needs them.
func (l *Lists) Uneven(ctx context.Context, field units.Field) (reason string, err error) {
	records := min(l.table.Index.Len(), startRecords)
	if records == 0 {
		return "", nil
	}
	r, err := l.first(ctx, field, records)
	if err != nil {
		return "", err
	}
	for record := int64(0); record < records; {
		batch, row := l.table.Index.Locate(record)
		rows := min(l.table.Index.Rows(int(batch))-row, records-record)
		lists, err := r.open(batch)
		if err == nil && lists != nil {
			err = lists.Check(row, row+rows, record)
		}
		switch uneven, ok := errors.AsType[*table.Uneven](err); {
		case ok:
			return uneven.Reason(), nil
		case ctx.Err() != nil:
			return "", blob.ReadError(l.files.List[0].Path, ctx.Err())
		case err != nil:
			return "", nil
		}
		record += rows
	}
	return "", nil
}

// first returns a reader of the first records, before the field belongs to the table.
func (l *Lists) first(ctx context.Context, field units.Field, records int64) (*reader, error) {
	last, _ := l.table.Index.Locate(records - 1)
	column, err := l.files.FirstColumn(ctx, field, int(last)+1)
	return &reader{ctx: ctx, lists: l, of: field, all: column}, err
}

// firstRecords bounds the search for a record that is not null. All rows get the
// shape of the first such record.
const firstRecords = 64

// FirstShape replaces each unknown length in shape by the length in the first record
// that is not null. It returns the reason if it finds none.
func (l *Lists) FirstShape(ctx context.Context, field units.Field, shape []int) (reason string, err error) {
	if l.table.Index.Len() == 0 {
		return "its lists have no declared length, and there is no record to take it from; give its shape", nil
	}
	records := min(l.table.Index.Len(), firstRecords)
	r, err := l.first(ctx, field, records)
	if err != nil {
		return "", err
	}
	for record := range records {
		batch, row := l.table.Index.Locate(record)
		lists, err := r.open(batch)
		if err != nil {
			return "", err
		}
		if lists == nil {
			continue
		}
		found, empty, err := lists.FirstShape(row, shape)
		switch {
		case err != nil:
			return "", r.damaged(err)
		case empty >= 0:
			return fmt.Sprintf("record %d, which its shape is taken from, has an empty list in dimension %d; give its shape", record, empty), nil
		case found:
			return "", nil
		}
	}
	return "its first records are null; give its shape", nil
}
