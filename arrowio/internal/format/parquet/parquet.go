// Package parquet reads Parquet files as a format of a dataset. Their units are row groups, or
// runs of pages of large ones. All of them are decoded.
//
// It imports the package internal/parquet, which reads the metadata, under its own name.
// Package chunk decodes the values.
package parquet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// Format is the format of Parquet files.
type Format struct{ Rules }

// Recognize implements format.Format.
func (f Format) Recognize(head, last []byte, _ int64) bool {
	for _, magic := range []string{parquet.Magic, parquet.Encrypted} {
		if bytes.HasPrefix(head, []byte(magic)) || bytes.HasSuffix(last, []byte(magic)) {
			return true
		}
	}
	return false
}

// Open implements format.Format.
func (f Format) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
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
	c := &file{content: content, meta: meta}
	c.facts = format.Metadata{Format: "parquet", Adapts: true, Mixed: true, Schema: &meta.Schema, Digest: sha256.Sum256(footer), Located: slices.Repeat([]bool{true}, len(meta.Schema.Fields))}
	return c, c.divide(ctx, f.Rules, offset)
}

// file is the contents of a Parquet file.
type file struct {
	content *resident.File
	meta    *parquet.File
	facts   format.Metadata
	units   []unit
	ranges  map[int][]resident.Extent // by unit that is a run, and leaf: its pages; nil if they are not fetched
	large   sync.Map                  // by place: it takes more memory than the metadata say
}

// Metadata implements format.Contents.
func (c *file) Metadata() *format.Metadata { return &c.facts }

// Scan implements format.Contents.
func (c *file) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return header{c, &c.units[i]} }, visit)
}

// Dictionaries implements format.Contents.
func (c *file) Dictionaries(_ context.Context, columns []int, _ []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	return make([][]*arrowtype.Dictionary, len(columns)), nil // a decoding looks values up
}

// leaves returns the numbers of the leaves of a column: from first to last-1.
func (c *file) leaves(column int) (first, last int) {
	last = len(c.meta.Leaves)
	if column+1 < len(c.meta.Firsts) {
		last = c.meta.Firsts[column+1]
	}
	return c.meta.Firsts[column], last
}

// leaf returns the number of the leaf that holds the rows of a column.
func (c *file) leaf(column int) int {
	return c.meta.Firsts[column] + max(arrowtype.Member(&c.meta.Schema.Fields[column]), 0)
}

// Size implements format.Contents. It counts the values, and the offsets of lists.
func (c *file) Size(_ context.Context, unit, column int, _ *arrowtype.Field) (int64, error) {
	u, number := &c.units[unit], c.leaf(column)
	g := &c.meta.Groups[u.group]
	leaf := &c.meta.Leaves[number]
	whole := chunk.Size(&g.Chunks[number], leaf) + 4*g.Rows*int64(leaf.MaxRepetition())
	return int64(float64(whole) * float64(u.stop-u.start) / float64(max(g.Rows, 1))), nil
}

// Stored implements format.Contents. For a run of pages it returns the offset index too, and the
// dictionary, which the pages may need.
func (c *file) Stored(unit, column int) []resident.Extent {
	u, leaf := &c.units[unit], c.leaf(column)
	k := &c.meta.Groups[u.group].Chunks[leaf]
	if c.whole(u) {
		return []resident.Extent{{Offset: k.Offset, Length: min(k.Length, format.MaxColumn)}}
	}
	list := []resident.Extent{{Offset: k.Index, Length: int64(k.IndexBytes)}, c.ranges[unit][leaf]}
	if k.Data > k.Offset && k.Lookups > 0 {
		list = append(list, resident.Extent{Offset: k.Offset, Length: k.Data - k.Offset})
	}
	return list
}

// failed returns the error for a column of a row group. It does not change an error that
// has a code, such as the error of a failed read.
func (c *file) failed(group, column int, err error) error {
	if _, known := errors.AsType[*status.Error](err); known || errors.Is(err, format.ErrEstimate) {
		return err
	}
	code, hint := parquet.Refuse(err)
	name := c.meta.Schema.Fields[column].Name
	return status.Errorf(code, "arrowio", "field %q: row group %d: %w", name, group, err).
		WithHint("%s", hint).With("field", name).With("row group", group)
}

// Verify implements format.Contents. It decodes the columns that are not fields, and all columns of
// a row group that is divided. The caller gathers all rows of fields, which decodes the others.
func (c *file) Verify(ctx context.Context, fields []int, progress func(bytes int64)) error {
	if err := format.CheckStart(ctx, c.content, parquet.Magic); err != nil {
		return err
	}
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
		n := min(c.facts.Units[first].Length, left)
		left -= n
		progress(n)
		first = last
	}
	progress(left)
	return nil
}

// verifyColumn decodes a column of the units of a row group. Only all units together have as
// many nulls as the metadata say.
func (c *file) verifyColumn(ctx context.Context, units []unit, column int) error {
	first, last := c.leaves(column)
	for number := first; number < last; number++ {
		leaf, values, nulls := &c.meta.Leaves[number], int64(0), int64(0)
		for i := range units {
			p, err := c.part(ctx, &units[i], number)
			if err != nil {
				return err
			}
			col, _, err := p.decode(ctx, false, format.MaxColumn)
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
