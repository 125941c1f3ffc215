package arrowio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/computed"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
)

// cached is a view that keeps the rows of the dataset below.
type cached struct {
	below source.Source
	table *table.Table
	parts *parts.Cache
}

// Cached returns a view of the same records, which keeps the rows of a source as decoded units of
// files are kept. o.Cache is a folder, or "memory" for up to 256 MiB in memory. "auto" (or "") is
// the folder of the user. The other options that it takes are CacheHome, CacheBytes, IO and
// FaultHandler.
//
// Rows are computed when a gather or a read first needs them, in runs of about 8 MiB with all
// fields. Processes that share the folder share the rows. The view has the fingerprint of the
// source, so the states of loaders fit both. The rows on disk belong to this fingerprint and to the
// versions of the files below, so that changed data are computed again.
//
// The error is Unsupported, and says what to do, if the rows depend on the draw, or if the
// fingerprint does not tell them from others. A folder that cannot be used is an error, except
// with "auto": then rows are kept in memory, and Cache of Facts says why. Close does not close the
// source.
func Cached(ctx context.Context, src source.Source, o Options) (source.Source, error) {
	if err := source.Given("arrowio", src); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	fingerprint, err := src.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	version, err := source.VersionOf(src)
	if err != nil {
		return nil, fmt.Errorf("the rows cannot be cached: %w", err)
	}
	name := "view " + fingerprint.String()
	content := resident.NewFile(identity{name: name, version: fmt.Sprintf("%s %q", name, version)}, nil)
	c, err := newCached(ctx, src, content, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newCached makes a view over a source. The content is an empty file with the version of the rows.
func newCached(ctx context.Context, src source.Source, content *resident.File, o Options) (*cached, error) {
	var release []func() error
	calls := source.NewCalls("arrowio", "view", func() (err error) {
		for _, f := range release {
			err = errors.Join(err, f())
		}
		return err
	})
	life, end := calls.Join(context.Background())
	release = append(release, func() error { end(); return nil })
	contents, err := computed.New(ctx, life, src)
	if err != nil {
		end()
		return nil, err
	}
	release = append(release, contents.Close)
	fields := contents.Fields()
	file := &units.File{
		File: &files.File{Path: content.Name()}, Metadata: contents.Metadata(), Member: union.Alone(len(fields)), Content: content, Contents: contents,
	}
	list := units.New([]*units.File{file}, resident.NewReads(blob.Disk), calls, life)
	if err := list.Number(ctx, len(fields)); err != nil {
		return nil, errors.Join(err, calls.Close(0))
	}
	decoder := decoded.New(list, calls, life)
	rows := &table.Table{Store: list, Units: decoder, Held: decoded.Bytes / 2, Calls: calls, Index: list.Index}
	for i, f := range fields {
		list.Fields = append(list.Fields, units.Field{Field: f, Column: i})
		rows.Add(f, buffers.Nulls{})
	}
	rows.Schema = src.Schema()
	rows.Schema.Fields = slices.Clone(rows.Schema.Fields)
	for i := range rows.Schema.Fields {
		rows.Schema.Fields[i].Mapped = false // a read finds the rows that are kept
	}
	c := &cached{below: src, table: rows}
	c.parts = parts.New(list, decoder, rows, life, parts.Options{
		Path: o.Cache, Home: o.CacheHome, Limit: o.CacheBytes, Whole: true, Opener: named{}, IO: o.IO, FaultHandler: o.FaultHandler,
	})
	release = append(release, func() error { c.parts.Close(); return nil })
	if err := errors.Join(list.Prepare(resident.Options{IO: "read"}), c.parts.Open()); err != nil {
		return nil, errors.Join(err, calls.Close(0))
	}
	return c, nil
}

// Schema implements source.Source.
func (c *cached) Schema() source.Schema { return c.table.Schema }

// Len implements source.Source.
func (c *cached) Len() int64 { return c.table.Index.Len() }

// Fingerprint implements source.Source. The rows are equal, so it is the fingerprint of the source.
func (c *cached) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	ctx, leave, err := enter(ctx, c.table.Calls)
	if err != nil {
		return source.Fingerprint{}, err
	}
	defer leave()
	return c.below.Fingerprint(ctx)
}

// Gatherer implements source.Source.
func (c *cached) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return c.parts.Gatherer(parts)
}

// Reader implements source.Source.
func (c *cached) Reader(fields []int) (source.Reader, error) { return c.parts.Reader(fields) }

// Facts implements source.Source. The units are the units of the source, because orders depend on
// them.
func (c *cached) Facts() source.Facts {
	f := c.below.Facts()
	f.Adjacent, f.Slow = nil, false // the rows that are kept lie elsewhere, and are only copied
	f.CacheBytes = func() int64 { return decoded.Bytes }
	f.Cache = func() source.CacheInfo {
		if own := c.parts.Info(); own != (source.CacheInfo{}) {
			return own
		}
		return source.CacheInfoOf(c.below)
	}
	return f
}

// Close implements source.Source.
func (c *cached) Close() error { return c.table.Calls.Close(source.Patience) }

// identity is an empty blob with the version of computed rows.
type identity struct{ name, version string }

func (b identity) Name() string                                     { return b.name }
func (identity) Size() int64                                        { return 0 }
func (b identity) Identity() string                                 { return b.version }
func (b identity) Version() string                                  { return b.version }
func (identity) ReadAt(context.Context, []byte, int64) (int, error) { return 0, io.EOF }
func (identity) Check() error                                       { return nil }
func (identity) Close() error                                       { return nil }

// named is an opener of which only names are used: a view has no other name than its own.
type named struct{ local.Opener }

func (named) Full(name string) string { return name }
