package arrowio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// parquetFormat is the format of Parquet files. Their units are row groups.
type parquetFormat struct{}

func (parquetFormat) recognize(head []byte, _ int64) bool {
	return bytes.HasPrefix(head, []byte(parquet.Magic)) || bytes.HasPrefix(head, []byte(parquet.Encrypted))
}

func (parquetFormat) open(ctx context.Context, content *resident.File) (contents, error) {
	size := content.Size()
	trailer := make([]byte, min(size, parquet.Trailer))
	if err := content.ReadFull(ctx, trailer, size-int64(len(trailer))); err != nil {
		return nil, err
	}
	offset, n, err := parquet.FooterOf(trailer, size)
	if err != nil {
		return nil, err
	}
	if n > arrowmeta.MaxFooter {
		return nil, status.Errorf(status.Unsupported, "parquet", "the footer has %d bytes, but at most %d are read", n, arrowmeta.MaxFooter).
			WithHint("write larger row groups").With("offset", offset)
	}
	footer := make([]byte, n)
	if err := content.ReadFull(ctx, footer, offset); err != nil {
		return nil, err
	}
	meta, err := parquet.ReadFile(footer, offset)
	if err != nil {
		return nil, parquet.Damaged("footer", offset, err)
	}
	c := &parquetFile{content: content, meta: meta}
	c.facts = metadata{format: "parquet", mixed: true, schema: &meta.Schema, digest: sha256.Sum256(footer), located: slices.Repeat([]bool{true}, len(meta.Schema.Fields))}
	for i := range meta.Groups {
		c.facts.units = append(c.facts.units, groupExtent(&meta.Groups[i]))
	}
	return c, nil
}

// groupExtent returns the bytes from the first chunk of a row group to the last.
func groupExtent(g *parquet.Group) (e extent) {
	for i := range g.Chunks {
		c := &g.Chunks[i]
		end := max(e.offset+e.length, c.Offset+c.Length)
		if i == 0 || c.Offset < e.offset {
			e.offset = c.Offset
		}
		e.length = end - e.offset
	}
	return e
}

// parquetFile is the contents of a Parquet file.
type parquetFile struct {
	content *resident.File
	meta    *parquet.File
	facts   metadata
}

func (c *parquetFile) metadata() *metadata { return &c.facts }

func (c *parquetFile) unchecked() []Unchecked { return nil }

func (c *parquetFile) scan(_ context.Context, first, last int, visit func(i int, u unit) error) error {
	for i := first; i < last; i++ {
		if err := visit(i, parquetGroup{c, i}); err != nil {
			return err
		}
	}
	return nil
}

func (c *parquetFile) dictionaries(_ context.Context, columns []int, _ []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	return make([][]*arrowtype.Dictionary, len(columns)), nil // decode looks values up
}

// leaves returns the numbers of the leaves of a column: from first to last-1.
func (c *parquetFile) leaves(column int) (first, last int) {
	last = len(c.meta.Leaves)
	if column+1 < len(c.meta.Firsts) {
		last = c.meta.Firsts[column+1]
	}
	return c.meta.Firsts[column], last
}

// leaf returns the number of the leaf that holds the rows of a column.
func (c *parquetFile) leaf(column int) int {
	return c.meta.Firsts[column] + max(arrowtype.Member(&c.meta.Schema.Fields[column]), 0)
}

// maxUnpacked bounds what one column of a row group takes in memory.
const maxUnpacked = 1 << 30

// promise implements contents: the stored bytes, and the memory of chunk.Decode.
func (c *parquetFile) promise(_ context.Context, group, column int, _ *arrowtype.Field) (int64, error) {
	leaf := c.leaf(column)
	stored := &c.meta.Groups[group].Chunks[leaf]
	return min(stored.Length+chunk.Promise(stored, &c.meta.Leaves[leaf]), maxUnpacked), nil
}

// decode reads and decodes the leaf of a column of a row group.
func (c *parquetFile) decode(ctx context.Context, group, column int, field *arrowtype.Field, lists bool, limit int64) (*table.Decoded, error) {
	began := time.Now()
	leaf := c.leaf(column)
	shape := lists && !field.HasInline(field.Structs()) // the offsets of text are in its values
	col, reading, err := c.chunk(ctx, group, leaf, shape, limit)
	if err != nil {
		return nil, c.failed(group, column, err)
	}
	if !(parquetGroup{c, group}).hasNulls(column) && !complete(col) {
		return nil, c.failed(group, column, errors.New("it has nulls, but the metadata of the file say that it has none"))
	}
	out, err := arrowBuffers(col, &c.meta.Leaves[leaf], field, shape, limit)
	if err != nil && limit < maxUnpacked {
		return nil, errPromise
	}
	if err != nil {
		return nil, c.failed(group, column, err)
	}
	out.Reading, out.Unpacking = reading, time.Since(began)-reading
	return out, nil
}

// chunk reads and decodes a leaf of a row group.
func (c *parquetFile) chunk(ctx context.Context, group, leaf int, shape bool, limit int64) (col *chunk.Column, reading time.Duration, err error) {
	g := &c.meta.Groups[group]
	stored := &g.Chunks[leaf]
	if stored.Length > maxUnpacked {
		return nil, 0, parquet.Unsupported(fmt.Sprintf("%d bytes, but at most %d are read at once", stored.Length, maxUnpacked))
	}
	began := time.Now()
	data := storedBuffer(stored.Length)
	if err := c.content.ReadFull(ctx, data, stored.Offset); err != nil {
		return nil, 0, err // a read may still write to data
	}
	defer keepBuffer(data)
	reading = time.Since(began)
	err = guard.Call("arrowio", func() (err error) {
		decode, rest := chunk.Decode, limit-stored.Length
		if shape {
			decode = chunk.DecodeShape
		}
		if limit == maxUnpacked {
			rest = limit
		}
		col, err = decode(data, stored, &c.meta.Leaves[leaf], g.Rows, rest)
		return err
	})
	if err != nil && limit < maxUnpacked {
		err = errPromise // or damage, which the next attempt finds again
	}
	return col, reading, err
}

// storedBuffers keeps buffers for stored bytes, because clearing new memory takes about as
// long as reading a file from the page cache.
var storedBuffers sync.Pool // of *[]byte

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

// failed returns the error for a column of a row group. It does not change an error that
// has a code, such as that of a failed read.
func (c *parquetFile) failed(group, column int, err error) error {
	var known *status.Error
	if errors.As(err, &known) || errors.Is(err, errPromise) {
		return err
	}
	code, hint := parquet.Refuse(err)
	name := c.meta.Schema.Fields[column].Name
	return status.Errorf(code, "arrowio", "field %q: row group %d: %w", name, group, err).
		WithHint("%s", hint).With("field", name).With("row group", group)
}

// complete reports whether neither a value nor a list is null.
func complete(col *chunk.Column) bool {
	return col.Valid == nil && !slices.ContainsFunc(col.Lists, func(l chunk.List) bool { return l.Valid != nil })
}

// verify decodes the columns that are not fields. The caller gathers all rows of fields,
// which decodes the others.
func (c *parquetFile) verify(ctx context.Context, fields []int, progress func(bytes int64)) error {
	left := c.content.Size()
	for i := range c.meta.Groups {
		for column := range c.meta.Schema.Fields {
			if slices.Contains(fields, column) {
				continue
			}
			if err := c.verifyColumn(ctx, i, column); err != nil {
				return c.failed(i, column, err)
			}
		}
		n := min(c.facts.units[i].length, left)
		left -= n
		progress(n)
	}
	progress(left)
	return nil
}

func (c *parquetFile) verifyColumn(ctx context.Context, group, column int) error {
	first, last := c.leaves(column)
	for leaf := first; leaf < last; leaf++ {
		col, _, err := c.chunk(ctx, group, leaf, false, maxUnpacked)
		if err != nil {
			return err
		}
		if !c.meta.Leaves[leaf].Text {
			continue
		}
		for k := range col.Bytes.Len() {
			if !utf8.Valid(col.Bytes.Value(k)) {
				return fmt.Errorf("value %d is not UTF-8", k)
			}
		}
	}
	return nil
}

// parquetGroup is a row group.
type parquetGroup struct {
	file  *parquetFile
	group int
}

func (g parquetGroup) chunkOf(column int) (*parquet.Chunk, *parquet.Leaf) {
	leaf := g.file.leaf(column)
	return &g.file.meta.Groups[g.group].Chunks[leaf], &g.file.meta.Leaves[leaf]
}

func (g parquetGroup) rows() int64 { return g.file.meta.Groups[g.group].Rows }

// encoding is not empty even if the pages are not compressed, because they must be
// decoded all the same.
func (g parquetGroup) encoding() string {
	if chunks := g.file.meta.Groups[g.group].Chunks; len(chunks) > 0 && chunks[0].Codec != parquet.Uncompressed {
		return chunks[0].Codec.String()
	}
	return "pages"
}

func (g parquetGroup) hasNulls(column int) bool {
	c, leaf := g.chunkOf(column)
	for _, n := range leaf.Nodes {
		if n.Repetition == parquet.Optional {
			return c.Nulls != 0
		}
	}
	return false
}

// setPositions has no positions, because the values must be decoded. The number of
// values bounds the number of elements of each level, which decode counts.
func (g parquetGroup) setPositions(to *table.Column, batch, column int) {
	for n := range to.Planes {
		p := &to.Planes[n]
		if p.Valid != nil {
			p.Valid[batch] = -1
		}
		if p.Length != nil {
			p.Length[batch] = g.file.meta.Groups[g.group].Chunks[g.file.leaf(column)].Values
		}
	}
}

func (g parquetGroup) uneven(column int, field *arrowtype.Field) (string, error) {
	c, leaf := g.chunkOf(column)
	want := int64(1)
	for n := range field.Levels[:len(field.Levels)-1] {
		want *= int64(field.List(n).Length())
	}
	if c.Nulls == 0 && leaf.MaxRepetition() > 0 && c.Values != g.rows()*want {
		return countReason(g.rows(), c.Values, want), nil
	}
	return "", nil
}
