// Package chunk decodes the column chunks of Parquet files into the buffers of Arrow
// arrays: offsets, validity bitmaps and values.
//
// All counts are checked: the entries of the pages against the chunk's metadata, rows
// against the row group's metadata, and bytes against a limit. So a damaged chunk ends
// with an error and never with other values, as far as levels, sizes and checksums can
// tell.
package chunk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// Column is a decoded chunk. Slots of nulls hold zeros, or values without bytes.
type Column struct {
	levels.Shape
	Fixed []byte         // Values values of the leaf's physical type, or narrow integers; booleans are bytes 0 and 1
	Width int            // bytes of a value in Fixed
	Bytes encoding.Bytes // if the physical type is ByteArray
}

// Estimate returns the bytes that Decode needs for most chunks of such metadata, in addition to
// its data. A chunk with a dictionary of long text may need more if its metadata do not say how
// long it is.
func Estimate(c *parquet.Chunk, leaf *parquet.Leaf) int64 {
	const enough = 1 << 50 // so that sums of damaged metadata do not overflow
	width := (leaf.Physical.Bits(leaf.Length) + 7) / 8
	size := min(max(c.Unpacked, 0), enough)
	if leaf.Physical == parquet.ByteArray {
		size += min(max(likelyText(c), 0), enough)
	}
	return size + min(max(c.Values, 0), enough>>16)*entryBytes(leaf, min(width, 1<<16)) + 8<<20
}

// Size returns about how many bytes the values of a chunk have decoded, with the offsets of text.
func Size(c *parquet.Chunk, leaf *parquet.Leaf) int64 {
	const enough = 1 << 40 // so that sums of damaged metadata do not overflow
	values := min(max(c.Values, 0), enough)
	if leaf.Physical == parquet.ByteArray {
		return min(max(likelyText(c), 0), enough) + 4*values
	}
	return (values*int64(min(leaf.Physical.Bits(leaf.Length), 1<<16)) + 7) / 8
}

// likelyText returns how many bytes of text a chunk has. If the metadata do not say, indices
// into a dictionary stand for text of up to 32 bytes, and other pages have it.
func likelyText(c *parquet.Chunk) int64 {
	switch {
	case c.Text > 0:
		return c.Text
	case c.Data > c.Offset && c.Lookups > 0:
		return c.Unpacked + 32*min(c.Values, 1<<40)
	}
	return c.Unpacked
}

// entryBytes bounds the memory of an entry: of the value or its offset, of lists, and of
// bitmaps.
func entryBytes(leaf *parquet.Leaf, width int) int64 {
	if width == 0 {
		width = 8 // an offset
	}
	return int64(width + 9*leaf.MaxRepetition() + 1)
}

// Decode decodes the chunk of a leaf in a row group with this many rows. Data holds the
// bytes of the chunk. The column takes at most limit bytes. So do the column, its
// dictionary and the largest page together. Beside half a GiB or more of values they may
// take twice the bytes of the data, because a large file may have large pages.
func Decode(data []byte, c *parquet.Chunk, leaf *parquet.Leaf, rows, limit int64) (*Column, error) {
	d := decoder{data: data, chunk: c, leaf: leaf, width: (leaf.Physical.Bits(leaf.Length) + 7) / 8, limit: limit}
	return d.run(rows)
}

// DecodeShape decodes the offsets and bitmaps of a chunk, as Decode does, and no values.
func DecodeShape(data []byte, c *parquet.Chunk, leaf *parquet.Leaf, rows, limit int64) (*Column, error) {
	d := decoder{data: data, chunk: c, leaf: leaf, limit: limit, shapeOnly: true}
	return d.run(rows)
}

// large is the limit from which on chunks may be large too.
const large = 512 << 20

func (d *decoder) run(rows int64) (*Column, error) {
	if err := d.prepare(); err != nil {
		return nil, err
	}
	d.scratch = takeScratch()
	defer d.keep()
	size := len(d.data)
	for number := 0; d.left > 0; number++ {
		at := size - len(d.data)
		if err := d.page(); err != nil {
			return nil, fmt.Errorf("page %d at byte %d of the column: %w", number, at, err)
		}
	}
	return d.finish(rows)
}

// decoder is the state of Decode.
type decoder struct {
	data  []byte // pages that were not decoded yet
	chunk *parquet.Chunk
	leaf  *parquet.Leaf
	width int   // bytes of a stored value; 0 for ByteArray
	limit int64 // bytes
	room  int64 // bytes for a page, the dictionary and text
	left  int64 // entries; an estimate if open
	open  bool  // the pages may have more entries

	shapeOnly  bool
	shape      *levels.Builder
	dictionary *values // nil before the dictionary page
	values     values
	largest    int // bytes of the largest page after decompression
	*scratch
}

// values holds the values of a dictionary, or the values of a column with a slot for every null.
type values struct {
	fixed []byte
	width int // bytes of a value in fixed
	bytes encoding.Bytes
	count int // number of values that are not null
}

// prepare checks that the chunk can be decoded within the limit.
func (d *decoder) prepare() error {
	if !codec.Supported(d.chunk.Codec) {
		return parquet.Unsupported(fmt.Sprintf("its pages are compressed with %v, which is not read", d.chunk.Codec))
	}
	if d.leaf.Physical < parquet.Boolean || d.leaf.Physical > parquet.Fixed {
		return parquet.Unsupported(fmt.Sprintf("its values have the %v", d.leaf.Physical))
	}
	each := entryBytes(d.leaf, d.width)
	if d.left = d.chunk.Values; d.left > d.limit/each {
		return parquet.TooLarge(fmt.Sprintf("%d values take more than %d bytes, the most that are decoded at once", d.left, d.limit))
	}
	d.room = d.limit - d.left*each
	if d.limit >= large {
		d.room += 2 * int64(len(d.data))
	}
	d.shape = levels.NewBuilder(d.leaf)
	d.values.bytes.Limit, d.values.bytes.Likely = d.limit, d.chunk.Text
	likely := 64 * int64(len(d.data)) // bytes; a damaged chunk may promise many more
	switch {
	case d.shapeOnly:
	case d.leaf.Physical == parquet.ByteArray:
		d.values.bytes.Offsets = append(make([]int64, 0, min(d.left, likely)+1), 0)
		d.values.bytes.Data = spare.Take(min(cmp.Or(d.chunk.Text, d.chunk.Unpacked), d.limit, likely))[:0]
	default:
		if d.values.width = d.leaf.Narrow; d.values.width == 0 {
			d.values.width = d.width
		}
		d.values.fixed = spare.Take(min(d.left*int64(d.values.width), likely))[:0]
	}
	return nil
}

// tooLarge returns the error for what takes more memory than the limit.
func tooLarge(format string, args ...any) error {
	return parquet.TooLarge(fmt.Sprintf(format, args...))
}

// page decodes the next page.
func (d *decoder) page() error {
	if len(d.data) == 0 {
		return fmt.Errorf("the column ends %d values early", d.left)
	}
	p, err := parquet.ReadPage(d.data)
	if err != nil {
		return err
	}
	if p.Stored > len(d.data)-p.Header {
		return fmt.Errorf("a page of %d bytes, but the column has only %d more", p.Stored, len(d.data)-p.Header)
	}
	stored := d.data[p.Header : p.Header+p.Stored]
	d.data = d.data[p.Header+p.Stored:]
	if p.HasCRC && crc32.ChecksumIEEE(stored) != p.CRC {
		return errors.New("the checksum differs")
	}
	if int64(p.Size) > d.limit {
		return tooLarge("a page of %d bytes after decompression, more than %d", p.Size, d.limit)
	}
	switch p.Kind {
	case parquet.DictionaryPage:
		return d.readDictionary(&p, stored)
	case parquet.DataPage:
		return d.version1(&p, stored)
	case parquet.DataPageV2:
		return d.version2(&p, stored)
	}
	return nil // an index has no values; the format asks readers to skip other pages
}

// unpack returns the decompressed bytes of a page, or of its values: size bytes.
func (d *decoder) unpack(stored []byte, size int) ([]byte, error) {
	if d.chunk.Codec == parquet.Uncompressed {
		if len(stored) != size {
			return nil, fmt.Errorf("%d bytes instead of %d", len(stored), size)
		}
		return stored, nil
	}
	if size == 0 {
		return nil, nil
	}
	if err := codec.CheckSize(len(stored), size, d.chunk.Codec); err != nil {
		return nil, err
	}
	if size > d.largest {
		if free := d.free() + int64(d.largest); int64(size) > free {
			return nil, tooLarge("a page of %d bytes where %d are left of %d", size, free, d.limit)
		}
		d.largest = size
	}
	if cap(d.unpacked) < size {
		d.unpacked = nil // before the next allocation
		d.unpacked = make([]byte, size)
	}
	out := d.unpacked[:size]
	return out, codec.Decompress(out, stored, d.chunk.Codec)
}

// free returns how many bytes pages, the dictionary and text may still take.
func (d *decoder) free() int64 {
	taken := d.largest + len(d.values.bytes.Data)
	if d.dictionary != nil {
		taken += len(d.dictionary.fixed) + len(d.dictionary.bytes.Data) + 8*len(d.dictionary.bytes.Offsets)
	}
	return d.room - int64(taken)
}

func (d *decoder) readDictionary(p *parquet.Page, stored []byte) error {
	if d.dictionary != nil || d.left < d.chunk.Values {
		return errors.New("a dictionary that is not the first page")
	}
	if p.Encoding != parquet.Plain && p.Encoding != parquet.PlainDictionary {
		return parquet.Unsupported(fmt.Sprintf("a dictionary in the encoding %v is not read", p.Encoding))
	}
	src, err := d.unpack(stored, p.Size)
	if err != nil {
		return err
	}
	free := min(d.limit, d.free())
	if int64(p.Values) > free/int64(max(d.width, 8)) {
		return tooLarge("a dictionary of %d values takes more than %d bytes", p.Values, d.limit)
	}
	dictionary := &values{width: d.width, bytes: encoding.Bytes{Limit: free - 8*int64(p.Values)}}
	if err := d.decode(dictionary, parquet.Plain, src, p.Values); err != nil {
		return err
	}
	d.dictionary = dictionary
	return nil
}

// version1 decodes a data page that compresses levels together with values.
func (d *decoder) version1(p *parquet.Page, stored []byte) error {
	src, err := d.unpack(stored, p.Size)
	if err != nil {
		return err
	}
	cut := func(width int, how parquet.Encoding) (part []byte, err error) {
		if width == 0 {
			return nil, nil
		}
		if how != parquet.RLE {
			return nil, parquet.Unsupported(fmt.Sprintf("levels in the encoding %v are not read", how))
		}
		if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
			return nil, errors.New("the levels are longer than the page")
		}
		end := 4 + int(binary.LittleEndian.Uint32(src))
		part, src = src[4:end], src[end:]
		return part, nil
	}
	rWidth, dWidth := d.shape.Widths()
	repetitions, err := cut(rWidth, p.Repetitions)
	if err != nil {
		return err
	}
	definitions, err := cut(dWidth, p.Definitions)
	if err != nil {
		return err
	}
	slots, err := d.levels(repetitions, definitions, p.Values)
	if err != nil {
		return err
	}
	return d.add(p.Encoding, src, &slots)
}

// version2 decodes a data page with uncompressed levels before its values.
func (d *decoder) version2(p *parquet.Page, stored []byte) error {
	repetitions := stored[:p.RepetitionBytes]
	definitions := stored[p.RepetitionBytes : p.RepetitionBytes+p.DefinitionBytes]
	src, size := stored[p.RepetitionBytes+p.DefinitionBytes:], p.Size-p.RepetitionBytes-p.DefinitionBytes
	if p.Compressed {
		var err error
		if src, err = d.unpack(src, size); err != nil {
			return err
		}
	}
	slots, err := d.levels(repetitions, definitions, p.Values)
	if err != nil {
		return err
	}
	return d.add(p.Encoding, src, &slots)
}

// levels adds the levels of a page with n entries, and returns the slots of its values.
func (d *decoder) levels(repetitions, definitions []byte, n int) (levels.Slots, error) {
	if err := d.take(int64(n)); err != nil {
		return levels.Slots{}, err
	}
	rWidth, dWidth := d.shape.Widths()
	r, err := encoding.NewRuns(repetitions, rWidth, n)
	if err != nil {
		return levels.Slots{}, err
	}
	def, err := encoding.NewRuns(definitions, dWidth, n)
	if err != nil {
		return levels.Slots{}, err
	}
	return d.shape.Page(&r, &def, n)
}

// take counts the entries of a page. For entries beyond an estimate, it takes more room.
func (d *decoder) take(n int64) error {
	if more := n - d.left; more > 0 {
		if !d.open {
			return fmt.Errorf("%d values, but the column has only %d more", n, d.left)
		}
		if each := entryBytes(d.leaf, d.width); more > d.free()/each {
			return tooLarge("%d values more than expected take more than %d bytes", more, d.limit)
		}
		d.room -= more * entryBytes(d.leaf, d.width)
		d.left = n
	}
	d.left -= n
	return nil
}

// finish returns the column.
func (d *decoder) finish(rows int64) (*Column, error) {
	shape, err := d.shape.Finish(rows)
	if err != nil {
		return nil, err
	}
	if n := d.chunk.Nulls; d.leaf.MaxRepetition() == 0 && n >= 0 && n != shape.Values-shape.Present {
		return nil, fmt.Errorf("%d nulls, but %d in its metadata", shape.Values-shape.Present, n)
	}
	return &Column{Shape: *shape, Fixed: d.values.fixed, Width: d.values.width, Bytes: d.values.bytes}, nil
}
