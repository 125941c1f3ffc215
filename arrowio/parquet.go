package arrowio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// parquetFormat is the format of Parquet files. Their units are row groups, or runs of pages
// of large ones.
type parquetFormat struct{ pageRules }

func (f parquetFormat) recognize(head []byte, _ int64) bool {
	return bytes.HasPrefix(head, []byte(parquet.Magic)) || bytes.HasPrefix(head, []byte(parquet.Encrypted))
}

func (f parquetFormat) open(ctx context.Context, content *resident.File) (contents, error) {
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
	c.facts = metadata{format: "parquet", adapts: true, mixed: true, schema: &meta.Schema, digest: sha256.Sum256(footer), located: slices.Repeat([]bool{true}, len(meta.Schema.Fields))}
	return c, c.divide(ctx, f.pageRules, offset)
}

// parquetFile is the contents of a Parquet file.
type parquetFile struct {
	content *resident.File
	meta    *parquet.File
	facts   metadata
	units   []parquetUnit
}

func (c *parquetFile) metadata() *metadata { return &c.facts }

func (c *parquetFile) unchecked() []Unchecked { return nil }

func (c *parquetFile) scan(_ context.Context, first, last int, visit func(i int, u unit) error) error {
	for i := first; i < last; i++ {
		if err := visit(i, parquetHeader{c, &c.units[i]}); err != nil {
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

// maxUnpacked bounds what one column of a unit takes in memory.
const maxUnpacked = 1 << 30

// promise implements contents: the stored bytes, and the memory of the decoding.
func (c *parquetFile) promise(ctx context.Context, unit, column int, _ *arrowtype.Field) (int64, error) {
	u, number := &c.units[unit], c.leaf(column)
	stored, leaf := &c.meta.Groups[u.group].Chunks[number], &c.meta.Leaves[number]
	if c.whole(u) {
		return min(stored.Length+chunk.Promise(stored, leaf), maxUnpacked), nil
	}
	pages, err := c.pages(ctx, u, number)
	if err != nil {
		return 0, c.failed(u.group, column, err)
	}
	return min(pages.Promise(stored, leaf), maxUnpacked), nil
}

func (c *parquetFile) likely(_ context.Context, unit, column int, _ *arrowtype.Field) (int64, error) {
	u, number := &c.units[unit], c.leaf(column)
	g := &c.meta.Groups[u.group]
	leaf := &c.meta.Leaves[number]
	whole := chunk.Likely(&g.Chunks[number], leaf) + 4*g.Rows*int64(leaf.MaxRepetition()) // values, and offsets of lists
	return int64(float64(whole) * float64(u.stop-u.start) / float64(max(g.Rows, 1))), nil
}

// decode reads and decodes the leaf of a column of a unit.
func (c *parquetFile) decode(ctx context.Context, unit, column int, field *arrowtype.Field, lists bool, limit int64) (*buffers.Decoded, error) {
	began := time.Now()
	u, leaf := &c.units[unit], c.leaf(column)
	shape := lists && !field.HasInline(field.Structs()) // the offsets of text are in its values
	col, reading, err := c.chunk(ctx, u, leaf, shape, limit)
	if err != nil {
		return nil, c.failed(u.group, column, err)
	}
	if !(parquetHeader{c, u}).nulls(column).May && !complete(col) {
		return nil, c.failed(u.group, column, errors.New("it has nulls, but the metadata of the file say that it has none"))
	}
	out, err := arrowBuffers(col, &c.meta.Leaves[leaf], field, shape, limit)
	if err != nil && limit < maxUnpacked {
		return nil, errPromise
	}
	if err != nil {
		return nil, c.failed(u.group, column, err)
	}
	out.Reading, out.Unpacking = reading, time.Since(began)-reading
	return out, nil
}

// chunk reads and decodes a leaf of a unit.
func (c *parquetFile) chunk(ctx context.Context, u *parquetUnit, leaf int, shape bool, limit int64) (col *chunk.Column, reading time.Duration, err error) {
	began := time.Now()
	stored, err := c.read(ctx, u, leaf)
	if err != nil {
		return nil, 0, err
	}
	defer keepBuffer(stored.buffer)
	reading = time.Since(began)
	err = guard.Call("arrowio", func() (err error) {
		rest := limit - int64(len(stored.head)+len(stored.data))
		if limit == maxUnpacked {
			rest = limit
		}
		g := &c.meta.Groups[u.group]
		col, err = stored.decode(&g.Chunks[leaf], &c.meta.Leaves[leaf], g.Rows, shape, rest)
		return err
	})
	if err != nil && limit < maxUnpacked {
		err = errPromise // or damage, which the next attempt finds again
	}
	return col, reading, err
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

// verify decodes the columns that are not fields, and all columns of a row group that is
// divided. The caller gathers all rows of fields, which decodes the others.
func (c *parquetFile) verify(ctx context.Context, fields []int, progress func(bytes int64)) error {
	left := c.content.Size()
	for first := 0; first < len(c.units); {
		last, group := first+1, c.units[first].group
		for last < len(c.units) && c.units[last].group == group {
			last++
		}
		for column := range c.meta.Schema.Fields {
			if last == first+1 && slices.Contains(fields, column) {
				continue
			}
			if err := c.verifyColumn(ctx, c.units[first:last], column); err != nil {
				return c.failed(group, column, err)
			}
		}
		n := min(c.facts.units[first].Length, left)
		left -= n
		progress(n)
		first = last
	}
	progress(left)
	return nil
}

// verifyColumn decodes a column of the units of a row group. Only all units together have as
// many nulls as the metadata say.
func (c *parquetFile) verifyColumn(ctx context.Context, units []parquetUnit, column int) error {
	first, last := c.leaves(column)
	for number := first; number < last; number++ {
		leaf, values, nulls := &c.meta.Leaves[number], int64(0), int64(0)
		for i := range units {
			col, _, err := c.chunk(ctx, &units[i], number, false, maxUnpacked)
			if err != nil {
				return err
			}
			for k := 0; leaf.Text && k < col.Bytes.Len(); k++ {
				if !utf8.Valid(col.Bytes.Value(k)) {
					return fmt.Errorf("value %d is not UTF-8", values+int64(k))
				}
			}
			values, nulls = values+col.Values, nulls+col.Values-col.Present
		}
		if n := c.meta.Groups[units[0].group].Chunks[number].Nulls; leaf.MaxRepetition() == 0 && n >= 0 && n != nulls {
			return fmt.Errorf("%d nulls, but %d in its metadata", nulls, n)
		}
	}
	return nil
}
