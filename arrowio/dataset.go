package arrowio

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/arrowio/internal/lists"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Dataset is a source.Source over the records of files. All methods are safe for
// concurrent use.
type Dataset struct {
	files   *units.Files
	union   *union.Union
	decoded *decoded.Cache // decodes units of the files
	table   *table.Table   // over the files and the cache
	lists   *lists.Lists
	parts   *parts.Cache             // keeps fields of the table on disk
	fetched func() source.Fetched    // nil for the files of this machine
	far     bool                     // the files are on other machines
	commits func() map[string]string // nil if no name stands for a commit
	rows    source.Source            // the fields of the table, and the fields that directories name

	fingerprint struct {
		sync.Mutex
		value source.Fingerprint
		bytes []source.Fingerprint // by file: the bytes that value covers
		known bool
	}
	hashed struct {
		sync.Mutex
		value *Hash // nil until it is known
	}
}

var _ source.Source = (*Dataset)(nil)

// Schema implements source.Source.
func (d *Dataset) Schema() source.Schema { return d.rows.Schema() }

// Arrow returns the column of every field, with the type of the union of all files, and the
// metadata of the first file. The column of a field that directories name is empty. It is for
// packages of this module.
func (d *Dataset) Arrow() ([]arrowmeta.Field, arrowmeta.Metadata) {
	schema := &d.union.Schema
	fields := make([]arrowmeta.Field, len(d.Schema().Fields))
	for i, f := range d.Schema().Fields {
		if stored, _, ok := d.table.Schema.Field(f.Name); ok {
			fields[i] = schema.Fields[d.files.Fields[stored].Column]
		}
	}
	return fields, schema.Metadata
}

// Len implements source.Source.
func (d *Dataset) Len() int64 { return d.table.Index.Len() }

// Facts implements source.Source. Check and Adjacent take the numbers of the fields of the dataset.
// If directories name fields, the numbers of the stored columns differ.
func (d *Dataset) Facts() source.Facts {
	f := stored{d}.Facts()
	rows := d.rows.Facts()
	f.Check, f.Adjacent = rows.Check, rows.Adjacent
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

// Commits returns the commits that names stood for when the files were opened, such as
// "hf://datasets/ORG/NAME@main".
func (d *Dataset) Commits() map[string]string {
	if d.commits == nil {
		return nil
	}
	return d.commits()
}

// pinned returns the names under which the files of these commits open.
func (d *Dataset) pinned() []string {
	var names []string
	for name, commit := range d.Commits() {
		name, _, _ = strings.Cut(name, "@")
		names = append(names, name+"@"+commit)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// farBytes implements FarBytes of [source.Facts]. Files that were fetched whole are here.
func (d *Dataset) farBytes() (sum int64) {
	for _, f := range d.files.List {
		if _, here := f.Content.Blob.(copied); d.far && !here {
			sum += f.Content.Size()
		}
	}
	return sum
}

// FileInfo describes one file of a dataset.
type FileInfo struct {
	Path         string
	Format       string // "file", "stream", "parquet", "npy", "raw", "megatron", "jsonl", "tfrecord", "tar" or "images"
	Records      int64
	Batches      int
	LargestBatch int64  // rows
	Bytes        int64  // size of the file, or of the text of a compressed file of JSON Lines or TFRecord
	Compression  string // such as "zstd"; "pages" for Parquet without compression, "json" for JSON Lines, "tf.Example" for TFRecord; if not empty, a batch is decoded whole to read one row, which is slow to shuffle
}

// Files describes the files in the order of their records.
func (d *Dataset) Files() []FileInfo {
	list := make([]FileInfo, len(d.files.List))
	for i, f := range d.files.List {
		list[i] = FileInfo{Path: f.Path, Format: f.Format, Compression: f.Encoding, Records: f.Records, Batches: len(f.Units), LargestBatch: f.Largest, Bytes: f.Content.Size()}
	}
	return list
}
