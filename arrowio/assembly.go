package arrowio

import (
	"context"
	"math"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/images"
	"github.com/meshfeed/meshfeed/arrowio/internal/lists"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/hostmemory"
)

// openBlob opens the bytes of a file, or other bytes that stand for them.
func openBlob(ctx context.Context, opener *stamping, found *files.File, o *Options, x indexer) (blob.Blob, error) {
	if o.Images {
		return images.Open(ctx, o.Opener, found.Path)
	}
	b, err := opener.Open(ctx, found.Entry)
	if err != nil {
		return nil, err
	}
	return x.prepared(ctx, opener, b, o.DType != dtype.Invalid)
}

// openFile opens a file and reads its metadata.
func openFile(ctx context.Context, found *files.File, o *Options, x indexer, reads *resident.Reads) (*units.File, error) {
	opener := &stamping{Opener: o.Opener}
	b, err := openBlob(ctx, opener, found, o, x)
	if err != nil {
		return nil, found.Advise(err)
	}
	f := &units.File{File: found, Content: resident.NewFile(b, reads)}
	release, err := f.Content.HoldEnd(ctx)
	if err == nil {
		defer release()
		f.Stamp = opener.stamp()
		err = x.approach(ctx, f.Content)
	}
	if err == nil {
		f.Contents, err = contentsOf(ctx, f.Content, x, o.raw())
	}
	if err == nil {
		f.Metadata = f.Contents.Metadata()
		if !f.Schema.BigEndian {
			return f, nil
		}
		err = status.New(status.Unsupported, "arrowio", "the values are big-endian").
			WithHint("write the file on a little-endian machine")
	}
	_ = f.Content.Close()
	return nil, found.Advise(f.Named(err))
}

// kept returns where decoded fields are kept. What was fetched is kept on disk in any case, so that the processes of
// a host and later runs find it there.
func (o *Options) kept() parts.Options {
	over := int64(decoded.Bytes)
	if o.Opener.Hints().Fetches() {
		over = -1
	}
	return parts.Options{Path: o.Cache, Home: o.CacheHome, Limit: o.CacheBytes, Over: over, Opener: o.Opener, IO: o.IO, FaultHandler: o.FaultHandler}
}

// assembly makes a dataset of open files. Its methods set the fields of the dataset that do
// not change later.
type assembly struct {
	*Dataset
	ctx    context.Context
	o      Options
	united []union.File // the files, with their members
}

// newDataset makes a dataset of open files. Close closes them. If newDataset fails,
// the caller closes them.
func newDataset(ctx context.Context, list []*units.File, reads *resident.Reads, o Options) (*Dataset, error) {
	d := &Dataset{}
	var end func()
	calls := source.NewCalls("arrowio", "dataset", func() error { end(); d.parts.Close(); return closeFiles(list) })
	life, end := calls.Join(context.Background())
	d.files = units.New(list, reads, calls, life)
	d.decoded = decoded.New(d.files, calls, life)
	d.table = &table.Table{Store: d.files, Units: d.decoded, Held: decoded.Bytes / 2, Calls: calls}
	if d.files.Fetches() {
		d.table.Fetch = d.decoded.Fetch
	}
	if far, ok := o.Opener.(interface{ Fetched() source.Fetched }); ok {
		d.fetched = far.Fetched
	}
	d.far = o.Opener.Hints().Fetches()
	if p, ok := o.Opener.(pins); ok {
		d.commits = p.Commits
	}
	d.lists = lists.New(d.files, d.decoded, d.table)
	d.parts = parts.New(d.files, d.decoded, d.table, life, o.kept())
	a := &assembly{Dataset: d, ctx: ctx, o: o}
	for _, step := range []func() error{a.unite, a.number, a.setFields, a.setRows, a.checkColumns, a.parts.Open, a.prepare} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// unite makes the union of the files, and sets the member of each file.
func (a *assembly) unite() (err error) {
	if err := agree(a.files.List); err != nil {
		return err
	}
	a.united = make([]union.File, len(a.files.List))
	for i, f := range a.files.List {
		a.united[i] = union.File{File: f.File, Schema: f.Schema, Adapts: f.Adapts}
	}
	if a.union, err = union.Unite(a.united, a.o.Columns); err != nil {
		return err
	}
	for i, f := range a.files.List {
		f.Member = a.united[i].Member
	}
	return nil
}

// number numbers the record batches and the records of all files.
func (a *assembly) number() error {
	err := a.files.Number(a.ctx, len(a.union.Schema.Fields))
	a.table.Index, a.table.Files = a.files.Index, a.files.Of
	return err
}

// checkColumns returns an error if a chosen column is not a field.
func (a *assembly) checkColumns() error {
	for _, name := range a.o.Columns {
		if _, err := a.Schema().Find(name); err != nil {
			return err
		}
	}
	return nil
}

// smallBytes is the size of the largest dataset that is assumed to fit into
// memory without asking the system how much is free.
const smallBytes = 16 << 20

// prepare prepares reads of the files.
func (a *assembly) prepare() error {
	free := int64(math.MaxInt64)
	if a.files.Bytes() > smallBytes {
		free = hostmemory.Free()
	}
	return a.files.Prepare(resident.Options{IO: a.o.IO, Memory: free, FaultHandler: a.o.FaultHandler})
}
