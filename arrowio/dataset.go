package arrowio

import (
	"context"
	"math"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/hostmemory"
)

// Dataset is a source.Source over the records of files. All methods are safe for
// concurrent use.
type Dataset struct {
	files   []*file
	union   *union.Union
	table   *table.Table
	rows    source.Source // the table, with the fields that directories name
	columns []int         // by field of the table: its column in the union
	nulls   []table.Nulls // by column of the union
	cache   decodeCache
	ahead   decodeAhead
	disk    disk
	decoded work
	large   sync.Map // of cacheKey: decodings that take more than their promise
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

// maxRecords bounds a dataset, because orders of records are bounded.
const maxRecords = 1 << 40

// newDataset makes a dataset of open files. Close closes them. If newDataset fails,
// the caller closes them.
func newDataset(ctx context.Context, files []*file, o Options) (*Dataset, error) {
	d := &Dataset{files: files, disk: disk{path: o.Cache, home: o.CacheHome, limit: o.CacheBytes, over: cacheBytes, io: o.IO, handler: o.FaultHandler}}
	calls := source.NewCalls("arrowio", "dataset", func() error { d.end(); d.disk.close(); return closeFiles(d.files) })
	d.life, d.end = calls.Join(context.Background())
	d.table = &table.Table{Calls: calls, Load: d.load, Arm: func() { d.set.Arm() }, Store: (*store)(d), Held: cacheBytes / 2}
	united, err := d.unite(o.Columns)
	if err != nil {
		return nil, err
	}
	if err := d.scan(ctx); err != nil {
		return nil, err
	}
	if err := d.setFields(ctx, united, o); err != nil {
		return nil, err
	}
	if err := d.setRows(); err != nil {
		return nil, err
	}
	for _, name := range o.Columns {
		if _, err := d.Schema().Find(name); err != nil {
			return nil, err
		}
	}
	contents := make([]*resident.File, len(files))
	for i, f := range files {
		contents[i] = f.content
	}
	if d.disk.chosen() && d.canStore() {
		if err := d.disk.open(); err != nil {
			return nil, err
		}
	}
	d.set, err = resident.NewSet(calls, contents, resident.Options{IO: o.IO, Memory: d.freeMemory(), FaultHandler: o.FaultHandler})
	return d, err
}

// unite makes the union of the files, and sets the member of each file.
func (d *Dataset) unite(chosen []string) (united []union.File, err error) {
	united = make([]union.File, len(d.files))
	for i, f := range d.files {
		united[i] = union.File{File: f.File, Schema: f.schema, Adapts: f.adapts}
	}
	if d.union, err = union.Unite(united, chosen); err != nil {
		return nil, err
	}
	for i, f := range d.files {
		f.member = united[i].Member
	}
	return united, nil
}

// smallBytes is the size up to which a dataset is assumed to fit into memory,
// without asking the system how much is free.
const smallBytes = 16 << 20

func (d *Dataset) freeMemory() int64 {
	if d.bytes() <= smallBytes {
		return math.MaxInt64
	}
	return hostmemory.Free()
}

// scan reads the header of every record batch. It builds the index from the numbers
// of rows, and records which columns have nulls.
func (d *Dataset) scan(ctx context.Context) error {
	rows := make([][]int64, len(d.files))
	d.nulls = make([]table.Nulls, len(d.union.Schema.Fields))
	var mu sync.Mutex
	err := parallel(len(d.files), func(i int) error {
		f := d.files[i]
		rows[i] = make([]int64, 0, len(f.units))
		found := make([]table.Nulls, len(d.nulls))
		err := f.scan(ctx, len(f.units), func(_ int, u unit) error {
			rows[i] = append(rows[i], u.rows())
			f.note(u, found)
			return nil
		})
		if err == nil {
			err = f.CheckRecords(f.records)
		}
		mu.Lock()
		defer mu.Unlock()
		for c := range found {
			d.nulls[c] = d.nulls[c].Or(found[c])
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.index(rows)
}

// note adds one record batch to the counts of the file, and to what is known of nulls.
func (f *file) note(u unit, nulls []table.Nulls) {
	f.records += u.rows()
	f.largest = max(f.largest, u.rows())
	if f.encoding == "" {
		f.encoding = u.encoding()
	}
	for c, number := range f.member.Numbers {
		if number >= 0 {
			nulls[c] = nulls[c].Or(u.nulls(number))
		} else if u.rows() > 0 {
			nulls[c] = table.Nulls{May: true, Has: true}
		}
	}
}

// index numbers the records of all files.
func (d *Dataset) index(rows [][]int64) error {
	var all []int64
	total := int64(0)
	for i, list := range rows {
		f := d.files[i]
		f.first = len(all)
		all = append(all, list...)
		for _, n := range list {
			if total += n; total > maxRecords {
				return status.Errorf(status.ResourceExhausted, "arrowio", "%s: the dataset has more than 2^40 records", f.Path).With("path", f.Path)
			}
			if len(d.files) > 1 {
				d.table.Files = append(d.table.Files, int32(i))
			}
		}
	}
	d.table.Index = table.NewIndex(all)
	return nil
}

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

// Facts implements source.Source. Check takes the numbers of the fields of the dataset, which are not
// those of the stored columns if directories name fields.
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
		list[i] = FileInfo{Path: f.Path, Format: f.format, Compression: f.encoding, Records: f.records, Batches: len(f.units), LargestBatch: f.largest, Bytes: f.content.Size()}
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
