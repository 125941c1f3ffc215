package arrowio

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Dataset is a source.Source over the records of files. All methods are safe for
// concurrent use.
type Dataset struct {
	files   []*file
	opener  blob.Opener // of the files
	union   *union.Union
	table   *table.Table
	rows    source.Source   // the table, with the fields that directories name
	columns []int           // by field of the table: its column in the union
	nulls   []buffers.Nulls // by column of the union
	cache   decodeCache
	ahead   decodeAhead
	disk    disk
	decoded work
	lists   listChecks
	set     *resident.Set // of the files

	life context.Context // ends when the dataset is closed
	end  func()

	fingerprint struct {
		sync.Mutex
		value source.Fingerprint
		bytes []source.Fingerprint // by file: of the bytes that value covers
		known bool
	}
	hashed hashed
}

var _ source.Source = (*Dataset)(nil)

// Schema implements source.Source.
func (d *Dataset) Schema() source.Schema { return d.rows.Schema() }

// Arrow returns the column of every field, with the type of the union of all files, and the
// metadata of the first file. The column of a field that directories name is empty. It is for packages of this
// module.
func (d *Dataset) Arrow() ([]arrowmeta.Field, arrowmeta.Metadata) {
	schema := &d.union.Schema
	fields := make([]arrowmeta.Field, len(d.Schema().Fields))
	for i, f := range d.Schema().Fields {
		if stored, _, ok := d.table.Schema.Field(f.Name); ok {
			fields[i] = schema.Fields[d.columns[stored]]
		}
	}
	return fields, schema.Metadata
}

// Len implements source.Source.
func (d *Dataset) Len() int64 { return d.table.Index.Len() }

// Facts implements source.Source. Check takes the numbers of the fields of the dataset. If
// directories name fields, the numbers of the stored columns differ.
func (d *Dataset) Facts() source.Facts {
	f := stored{d}.Facts()
	f.Check = d.rows.Facts().Check
	return f
}

// Gatherer implements source.Source.
func (d *Dataset) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return d.rows.Gatherer(parts)
}

// Reader implements source.Source.
func (d *Dataset) Reader(fields []int) (source.Reader, error) { return d.rows.Reader(fields) }

// Close implements source.Source.
func (d *Dataset) Close() error { return d.table.Calls.Close(source.Patience) }

// enter begins a call. The context that it returns ends with ctx, and when the dataset is
// closed. The caller calls leave at the end.
func enter(ctx context.Context, calls *source.Calls) (joined context.Context, leave func(), err error) {
	if err := calls.Enter(); err != nil {
		return nil, nil, err
	}
	joined, stop := calls.Join(ctx)
	return joined, func() { stop(); calls.Leave() }, nil
}

// FileInfo describes one file of a dataset.
type FileInfo struct {
	Path         string
	Format       string // "file", "stream" or "parquet"
	Records      int64
	Batches      int
	LargestBatch int64  // rows
	Bytes        int64  // of the whole file
	Compression  string // such as "zstd"; "pages" for Parquet without compression; if not empty, a batch is decoded whole to read one row, which is slow to shuffle
}

// Files describes the files in the order of their records.
func (d *Dataset) Files() []FileInfo {
	list := make([]FileInfo, len(d.files))
	for i, f := range d.files {
		list[i] = FileInfo{Path: f.Path, Format: f.Format, Compression: f.encoding, Records: f.records, Batches: len(f.Units), LargestBatch: f.largest, Bytes: f.content.Size()}
	}
	return list
}

// store implements table.Store over the files.
type store Dataset

// Base implements table.Store.
func (s *store) Base(file int32) (uintptr, bool) { return s.files[file].content.Base() }

// Acquire implements table.Store.
func (s *store) Acquire(ctx context.Context, spans []resident.Span, to []uintptr) (table.Lease, error) {
	lease, err := s.set.Acquire(ctx, spans, to)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// Ahead implements table.Store.
func (s *store) Ahead(spans []resident.Span) { s.set.Ahead(spans) }

// Encoded implements table.Store.
func (s *store) Encoded(file int32) bool { return s.files[file].encoding != "" }

// Check implements table.Store. It skips files that are not mapped, because a read
// that ends early returns an error.
func (s *store) Check(files []int32) error {
	for _, i := range files {
		content := s.files[i].content
		if address, _ := content.Base(); address == 0 {
			continue
		}
		if err := content.Check(); err != nil {
			return s.files[i].named(err)
		}
	}
	return nil
}

// Named implements table.Store.
func (s *store) Named(batch int32, err error) error { return s.of(batch).named(err) }

// of returns the file of a record batch.
func (s *store) of(batch int32) *file { return s.files[s.table.File(batch)] }
