package parquet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// place is a column of a unit.
type place struct{ unit, column int }

// decoding is a format.Decoding.
type decoding struct {
	part
	at    place
	field *arrowtype.Field
	limit int64 // bytes of memory
}

// Decoding implements format.Contents. It estimates the stored bytes, and the memory of the
// decoding.
func (c *file) Decoding(ctx context.Context, unit, column int, field *arrowtype.Field) (format.Decoding, error) {
	p, err := c.part(ctx, &c.units[unit], c.leaf(column))
	if err != nil {
		return format.Decoding{}, c.failed(c.units[unit].group, column, err)
	}
	d := &decoding{part: p, at: place{unit, column}, field: field, limit: p.estimate()}
	if _, large := c.large.Load(d.at); large {
		d.limit = format.MaxColumn
	}
	return format.Decoding{Memory: d.limit, Run: d.run}, nil
}

// run reads and decodes the column.
func (d *decoding) run(ctx context.Context, lists bool) (*buffers.Decoded, error) {
	began := time.Now()
	shape := lists && !d.field.HasInline(d.field.Structs()) // the offsets of text are in its values
	col, reading, err := d.decode(ctx, shape, d.limit)
	if err != nil {
		return nil, d.failed(err)
	}
	if !(header{d.file, d.unit}).Nulls(d.at.column).May && !complete(col) {
		return nil, d.file.failed(d.unit.group, d.at.column, errors.New("it has nulls, but the metadata of the file count 0 nulls"))
	}
	out, err := arrowBuffers(col, d.schema(), d.field, shape, d.limit)
	if err != nil {
		return nil, d.failed(d.grown(err, d.limit))
	}
	out.Reading, out.Unpacking = reading, time.Since(began)-reading
	return out, nil
}

// failed returns the error of the decoding. The next one gets all memory that it may take if
// this one needs more.
func (d *decoding) failed(err error) error {
	if errors.Is(err, format.ErrEstimate) {
		d.file.large.Store(d.at, true)
	}
	return d.file.failed(d.unit.group, d.at.column, err)
}

// complete reports whether neither a value nor a list is null.
func complete(col *chunk.Column) bool {
	return col.Valid == nil && !slices.ContainsFunc(col.Lists, func(l chunk.List) bool { return l.Valid != nil })
}

// part is a leaf of a unit: a chunk, or some pages of it.
type part struct {
	file  *file
	unit  *unit
	leaf  int
	pages *chunk.Pages // nil for all of the chunk
}

// part returns a leaf of a unit. If the unit is a run of pages, it reads the offset index.
func (c *file) part(ctx context.Context, u *unit, leaf int) (p part, err error) {
	p = part{file: c, unit: u, leaf: leaf}
	if !c.whole(u) {
		p.pages, err = c.pages(ctx, u, leaf)
	}
	return p, err
}

func (p *part) chunk() *parquet.Chunk { return &p.file.meta.Groups[p.unit.group].Chunks[p.leaf] }

func (p *part) schema() *parquet.Leaf { return &p.file.meta.Leaves[p.leaf] }

// estimate returns about how many bytes of memory decode takes, with the stored bytes.
func (p *part) estimate() int64 {
	c, leaf := p.chunk(), p.schema()
	if p.pages != nil {
		return min(p.pages.Estimate(c, leaf), format.MaxColumn)
	}
	return min(c.Length+chunk.Estimate(c, leaf), format.MaxColumn)
}

// decode reads and decodes the part within a limit of memory. The error is format.ErrEstimate if
// a larger limit may help.
func (p *part) decode(ctx context.Context, shape bool, limit int64) (col *chunk.Column, reading time.Duration, err error) {
	began := time.Now()
	s, err := p.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer keepBuffer(s.buffer)
	reading = time.Since(began)
	rest := limit
	if limit < format.MaxColumn {
		rest -= int64(len(s.head) + len(s.data))
	}
	err = guard.Call("arrowio", func() (err error) {
		col, err = p.unpack(&s, shape, rest)
		return err
	})
	return col, reading, p.grown(err, limit)
}

// grown returns format.ErrEstimate for an error within less than the largest limit. The error may
// be damage, which the decoding with that limit finds again.
func (p *part) grown(err error, limit int64) error {
	if err != nil && limit < format.MaxColumn {
		return format.ErrEstimate
	}
	return err
}

// stored is what is read of a part.
type stored struct {
	head   []byte // if there are pages: what is before the first page of the chunk, if they need it
	data   []byte
	buffer []byte // for later reads
}

// read reads a part.
func (p *part) read(ctx context.Context) (s stored, err error) {
	k := p.chunk()
	start, stop := k.Offset, k.Offset+k.Length
	if p.pages != nil {
		start, stop = pageRange(k, p.pages)
	}
	if stop-start > format.MaxColumn {
		return s, parquet.TooLarge(fmt.Sprintf("%d bytes, but at most %d are read at once", stop-start, format.MaxColumn))
	}
	data := storedBuffer(stop - start)
	if err = p.file.content.ReadFull(ctx, data, start); err != nil {
		return s, err // a read may still write to data
	}
	s.data, s.buffer = data, data
	switch {
	case p.pages == nil:
	case start == k.Offset:
		s.head, s.data = data[:k.Data-start], data[k.Data-start:]
	case k.Data > k.Offset && chunk.NeedsDictionary(data):
		s.head, err = p.file.readBytes(ctx, k.Offset, k.Data-k.Offset)
	}
	return s, err
}

// unpack decodes what was read within a limit of memory.
func (p *part) unpack(s *stored, shape bool, limit int64) (*chunk.Column, error) {
	c, leaf, rows := p.chunk(), p.schema(), p.file.meta.Groups[p.unit.group].Rows
	switch {
	case p.pages != nil:
		return chunk.DecodePages(s.head, s.data, p.pages, c, leaf, shape, limit)
	case shape:
		return chunk.DecodeShape(s.data, c, leaf, rows, limit)
	}
	return chunk.Decode(s.data, c, leaf, rows, limit)
}

// readBytes reads n bytes that the footer declares.
func (c *file) readBytes(ctx context.Context, offset, n int64) ([]byte, error) {
	if n > format.MaxColumn {
		return nil, parquet.TooLarge(fmt.Sprintf("%d bytes, but at most %d are read at once", n, format.MaxColumn))
	}
	b := make([]byte, n)
	return b, c.content.ReadFull(ctx, b, offset)
}

// whole reports whether a unit is a row group.
func (c *file) whole(u *unit) bool {
	return u.start == 0 && u.stop == c.meta.Groups[u.group].Rows
}

// pages reads which pages of a leaf hold the rows of a unit. The offset indexes of large
// files take too much memory to be kept.
func (c *file) pages(ctx context.Context, u *unit, leaf int) (*chunk.Pages, error) {
	g := &c.meta.Groups[u.group]
	k := &g.Chunks[leaf]
	b, err := c.readBytes(ctx, k.Index, int64(k.IndexBytes))
	if err != nil {
		return nil, err
	}
	index, err := parquet.ReadOffsetIndex(b, k, g.Rows)
	return &chunk.Pages{Index: index, Start: u.start, Stop: u.stop}, err
}

// storedBuffers keeps buffers for stored bytes, because clearing new memory takes about as
// long as reading a file from the page cache.
var storedBuffers sync.Pool // has *[]byte

// maxKept bounds the buffers that are kept.
const maxKept = 128 << 20

// storedBuffer returns a buffer of n bytes with any content.
func storedBuffer(n int64) []byte {
	if kept, ok := storedBuffers.Get().(*[]byte); ok && int64(cap(*kept)) >= n {
		return (*kept)[:n]
	}
	return make([]byte, n)
}

func keepBuffer(b []byte) {
	if cap(b) <= maxKept {
		storedBuffers.Put(&b)
	}
}
