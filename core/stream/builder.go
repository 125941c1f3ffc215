package stream

import (
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/internal/block"
)

// builder collects chunks, and builds batches of their records.
type builder struct {
	o      Options
	pieces []piece // pieces of records that are in no batch yet
	held   int64   // the number of their records
	done   int64   // the number of records before them
}

// piece is the rest of a chunk.
type piece struct {
	chunk source.Source
	first int64 // its first record that is in no batch yet
}

func (p piece) rows() int64 { return p.chunk.Len() - p.first }

// check makes the loader of a batch that is never built, which finds everything that is
// wrong with the layout and the fields.
func (b *builder) check(schema source.Schema) error {
	if b.o.Layout == nil {
		return fail(status.InvalidArgument, "there is no layout").WithHint("set Options.Layout")
	}
	if d := b.o.Layout.Document().Dataset; d != nil {
		return fail(status.InvalidArgument, "the layout is for a dataset of %d records, but the number of a stream's records is unknown", d.Records).
			WithHint("leave /dataset out of the layout document")
	}
	o := b.options()
	o.Prefetch = b.o.Prefetch
	l, err := loader.New(&numbered{schema: b.filled(schema), records: b.o.Layout.BatchSize()}, o)
	if err != nil {
		return err
	}
	return l.Close()
}

// filled returns a schema. In it, exactly the fields with a fill value may hold nulls. A
// fill value that does not fit its field is then found before the first null.
func (b *builder) filled(schema source.Schema) source.Schema {
	schema.Fields = slices.Clone(schema.Fields)
	for i := range schema.Fields {
		_, schema.Fields[i].Nullable = b.o.Fill[schema.Fields[i].Name]
	}
	return schema
}

func (b *builder) options() loader.Options {
	return loader.Options{
		Layout: b.o.Layout, Process: b.o.Process, Order: sampler.Sequential, Epochs: 1,
		Prefetch: -1, Fill: b.o.Fill, Allocator: b.o.Allocator,
	}
}

// loader returns a loader at the first record that is in no batch yet.
func (b *builder) loader(ctx context.Context, src source.Source) (*loader.Loader, error) {
	l, err := loader.NewContext(ctx, src, b.options())
	if err != nil || b.done == 0 {
		return l, err
	}
	return l, l.Seek(batch.Cursor{Position: b.done})
}

// add takes a chunk.
func (b *builder) add(chunk source.Source) error {
	if chunk.Len() == 0 {
		return chunk.Close()
	}
	next := &located{chunk, b.done + b.held}
	b.pieces = append(b.pieces, piece{next, 0})
	b.held += chunk.Len()
	return next.locate(b.accept(chunk.Schema()))
}

// accept returns an error if the chunk has nulls in a field of the layout that has no fill
// value.
func (b *builder) accept(schema source.Schema) error {
	for _, a := range b.o.Layout.Arrays() {
		if _, f, ok := schema.Field(a.Field); ok {
			if err := f.CheckFill(b.o.Fill[a.Field]); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole builds as many whole batches as there are records for. More records may come, so
// the loader is told of another batch, which is not built. Otherwise it would say in the
// step that the epoch ends.
func (b *builder) whole(ctx context.Context, deliver func(*batch.Batch) error) error {
	size := b.o.Layout.BatchSize()
	return b.build(ctx, b.held/size*size, size, deliver)
}

// rest builds what the layout's remainder makes of the last records.
func (b *builder) rest(ctx context.Context, deliver func(*batch.Batch) error) error {
	if b.o.Layout.Remainder() == "drop" {
		return nil
	}
	return b.build(ctx, b.held, 0, deliver)
}

// build builds batches of the next n records, then closes the chunks that have no further
// ones. The loader is told of a number of later records.
func (b *builder) build(ctx context.Context, n, later int64, deliver func(*batch.Batch) error) error {
	if n == 0 {
		return nil
	}
	src, err := b.next(n)
	if err != nil {
		return err
	}
	l, err := b.loader(ctx, &numbered{below: src, schema: src.Schema(), offset: b.done, records: b.done + n + later})
	if err != nil {
		return err
	}
	defer l.Close()
	for built := int64(0); built < n; built += b.o.Layout.BatchSize() {
		next, err := l.Next(ctx)
		if err == nil {
			err = deliver(next)
		}
		if err != nil {
			return err
		}
	}
	return b.drop(n)
}

// next returns a source of the next n records.
func (b *builder) next(n int64) (source.Source, error) {
	var parts []source.Source
	for _, p := range b.pieces {
		stop := min(p.rows(), n)
		if n -= stop; stop == 0 {
			break
		}
		part, err := view.Slice(p.chunk, p.first, p.first+stop)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return view.Concat(parts...)
}

// drop counts n records as delivered.
func (b *builder) drop(n int64) error {
	b.held, b.done = b.held-n, b.done+n
	for len(b.pieces) > 0 && n >= b.pieces[0].rows() {
		n -= b.pieces[0].rows()
		if err := b.pieces[0].chunk.Close(); err != nil {
			return err
		}
		b.pieces = b.pieces[1:]
	}
	if n > 0 {
		b.pieces[0].first += n
	}
	return nil
}

// close closes all chunks.
func (b *builder) close() {
	for _, p := range b.pieces {
		_ = p.chunk.Close() // the error that ended the stream is reported
	}
	b.pieces = nil
}

// numbered is a source without its first records, which have been delivered. The other
// records keep the numbers that they have in the stream.
type numbered struct {
	below   source.Source // nil if no record is ever gathered
	schema  source.Schema
	offset  int64 // the number of records that are gone
	records int64 // including the records that are gone
}

func (n *numbered) Schema() source.Schema { return n.schema }
func (n *numbered) Len() int64            { return n.records }
func (n *numbered) Facts() source.Facts   { return source.Facts{} }
func (n *numbered) Close() error          { return nil }

// Fingerprint returns zeros: nothing identifies records that arrive once.
func (n *numbered) Fingerprint(context.Context) (source.Fingerprint, error) {
	return source.Fingerprint{}, nil
}

// Reader returns an error, because loaders do not call it.
func (n *numbered) Reader([]int) (source.Reader, error) {
	return nil, fail(status.Unsupported, "the records of a stream are only gathered")
}

func (n *numbered) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if n.below == nil {
		_, err := block.Compile(n.schema, parts, nil)
		return nothing{}, err
	}
	g, err := n.below.Gatherer(parts)
	return &renumbering{g, n.offset}, err
}

// renumbering subtracts the number of records that are gone.
type renumbering struct {
	source.Gatherer
	offset int64
}

func (r *renumbering) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	below := make([]int64, len(records))
	for i, record := range records {
		below[i] = record
		if record >= 0 {
			below[i] -= r.offset
		}
	}
	return r.Gatherer.Gather(ctx, draw, below, jobs)
}

// Ahead does nothing, because the records are in memory.
func (r *renumbering) Ahead(source.Draw, []int64) {}

// nothing gathers no records.
type nothing struct{}

func (nothing) Gather(context.Context, source.Draw, []int64, []source.Job) error { return nil }
func (nothing) Ahead(source.Draw, []int64)                                       {}
func (nothing) Close() error                                                     { return nil }
