package chunk

import (
	"errors"
	"fmt"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// Pages is a part of a chunk: the pages that hold some rows of its row group.
type Pages struct {
	Index       *parquet.OffsetIndex
	Start, Stop int64 // rows of the row group
}

// Range returns the position of the pages in the file.
func (p *Pages) Range() (start, stop int64) {
	first, last := p.Index.Pages(p.Start, p.Stop)
	return p.Index.Offsets[first], p.Index.Offsets[last]
}

// Estimate returns the stored bytes of these pages and the dictionary, and the bytes that
// DecodePages needs for most such pages.
func (p *Pages) Estimate(c *parquet.Chunk, leaf *parquet.Leaf) int64 {
	part := p.part(c, leaf, 2)
	return part.Length + Estimate(&part, leaf)
}

// part returns metadata for these pages, in place of the metadata of the whole chunk. Only
// a column without lists has as many values as rows. All else is estimated, times a
// factor.
func (p *Pages) part(c *parquet.Chunk, leaf *parquet.Leaf, factor float64) parquet.Chunk {
	first, last := p.Index.Pages(p.Start, p.Stop)
	out := parquet.Chunk{Length: c.Data - c.Offset + p.Index.Offsets[last] - p.Index.Offsets[first], Nulls: -1, Codec: c.Codec, Offset: c.Offset, Data: c.Data, Lookups: c.Lookups}
	likely := func(whole int64) int64 {
		return int64(float64(whole) * min(1, factor*float64(out.Length)/float64(c.Length)))
	}
	out.Unpacked, out.Text, out.Values = likely(c.Unpacked), likely(c.Text), likely(c.Values)
	if leaf.MaxRepetition() == 0 {
		out.Values = p.Index.Rows[last] - p.Index.Rows[first]
	}
	return out
}

// NeedsDictionary reports whether some pages have indices into the dictionary. If a page
// header is damaged, it leaves the error to DecodePages.
func NeedsDictionary(data []byte) bool {
	for len(data) > 0 {
		p, err := parquet.ReadPage(data)
		if err != nil || p.Stored > len(data)-p.Header {
			return false
		}
		if data = data[p.Header+p.Stored:]; p.Encoding == parquet.RLEDictionary || p.Encoding == parquet.PlainDictionary {
			return true
		}
	}
	return false
}

// DecodePages decodes rows of a chunk, as Decode does, or their shape alone. Head holds the
// bytes of the chunk before its first data page. It may be empty if the pages need no
// dictionary. Data holds the pages. Every page must have the rows that the offset index says.
func DecodePages(head, data []byte, p *Pages, c *parquet.Chunk, leaf *parquet.Leaf, shape bool, limit int64) (*Column, error) {
	part := p.part(c, leaf, 1)
	d := decoder{data: data, chunk: &part, leaf: leaf, width: (leaf.Physical.Bits(leaf.Length) + 7) / 8, limit: limit, shapeOnly: shape, open: leaf.MaxRepetition() > 0}
	if shape {
		d.width = 0
	}
	if err := d.prepare(); err != nil {
		return nil, err
	}
	d.scratch = takeScratch()
	defer d.keep()
	if err := d.head(head); err != nil {
		return nil, err
	}
	number := 0 // as Decode counts, which begins with the dictionary
	if c.Data > c.Offset {
		number = 1
	}
	first, last := p.Index.Pages(p.Start, p.Stop)
	begin := p.Index.Offsets[first]
	for i := first; i < last; i++ {
		d.data = data[p.Index.Offsets[i]-begin : p.Index.Offsets[i+1]-begin]
		if err := d.listed(p.Index.Rows[i+1]-p.Index.Rows[first], i+1 == p.Index.Len()); err != nil {
			return nil, fmt.Errorf("page %d at byte %d of the column: %w", number+i, p.Index.Offsets[i]-c.Offset, err)
		}
	}
	base := p.Index.Rows[first]
	col, err := d.finish(p.Index.Rows[last] - base)
	if err != nil {
		return nil, err
	}
	if p.Start > base || p.Stop < p.Index.Rows[last] {
		col.keep(p.Start-base, p.Stop-base)
	}
	return col, nil
}

// head decodes the dictionary.
func (d *decoder) head(data []byte) (err error) {
	d.data = data
	for number := 0; len(d.data) > 0; number++ {
		at, left := len(data)-len(d.data), d.left
		if err = d.page(); err == nil && (d.left < left || d.shape.Rows() > 0) {
			err = errors.New("values before the first page of the offset index")
		}
		if err != nil {
			return fmt.Errorf("page %d at byte %d of the column: %w", number, at, err)
		}
	}
	return nil
}

// listed decodes a page of the offset index. Rows is the total number of rows after it.
// As in Decode, anything may follow the last page of a chunk.
func (d *decoder) listed(rows int64, last bool) error {
	before := d.shape.Rows()
	for len(d.data) > 0 && (!last || d.open || d.left > 0) {
		if err := d.page(); err != nil {
			return err
		}
	}
	if n := d.shape.Rows(); n != rows {
		return fmt.Errorf("%d rows, but %d in the offset index", n-before, rows-before)
	}
	return nil
}

// keep drops all rows except start to stop-1.
func (c *Column) keep(start, stop int64) {
	start, stop = c.Cut(start, stop)
	if c.Fixed != nil {
		c.Fixed = levels.Kept(c.Fixed, start*int64(c.Width), stop*int64(c.Width))
	}
	if c.Bytes.Offsets != nil {
		from, to := c.Bytes.Offsets[start], c.Bytes.Offsets[stop]
		c.Bytes.Offsets = levels.CutOffsets(c.Bytes.Offsets, start, stop)
		c.Bytes.Data = levels.Kept(c.Bytes.Data, from, to)
	}
}
