// Package parquet reads the metadata of Parquet files: the schema, the row groups and the
// headers of pages, as the format's parquet.thrift defines them.
//
// The metadata are not trusted: what [ReadFile] returns lies within the file, and all
// numbers are in range. Package encoding decodes the values of pages.
package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/thrift"
)

// A Parquet file begins with the magic "PAR1". It ends with its metadata, their length, and
// the magic again, or "PARE" if the metadata are encrypted.
const (
	Magic     = "PAR1"
	Encrypted = "PARE"
	Trailer   = 8 // bytes of the length and the magic
)

// FooterOf returns the offset and the size of the footer of a file, which has size bytes,
// from its last ones. The error is DataLoss, or Unsupported for an encrypted footer.
func FooterOf(last []byte, size int64) (offset int64, n int, err error) {
	end := max(size-Trailer, 0)
	if bytes.HasSuffix(last, []byte(Encrypted)) {
		return 0, 0, status.Errorf(status.Unsupported, "parquet", "the footer of the Parquet file is encrypted").
			WithHint("write it with a plain footer, or as an Arrow IPC file").With("offset", end)
	}
	if len(last) < Trailer || !bytes.HasSuffix(last, []byte(Magic)) {
		return 0, 0, status.Errorf(status.DataLoss, "parquet", "end of the file at byte %d: no footer", end).
			WithHint("it was cut short, or its writer was not closed: write or download it again").With("offset", end)
	}
	n = int(binary.LittleEndian.Uint32(last[len(last)-Trailer:]))
	if offset = end - int64(n); n == 0 || offset < int64(len(Magic)) {
		return 0, 0, Damaged("end of the file", end, fmt.Errorf("a footer of %d bytes in a file of %d", n, size))
	}
	return offset, n, nil
}

// Unsupported is an error for data that follow the format, but are not read here.
type Unsupported = arrowmeta.Unsupported

// TooLarge is an error for parts of a file that take more memory than a decoding may have.
type TooLarge string

// Error implements error.
func (t TooLarge) Error() string { return string(t) }

// OutOfRange is an error for values that follow the format, but that the type of their field
// cannot hold.
type OutOfRange string

// Error implements error.
func (o OutOfRange) Error() string { return string(o) }

// Refuse returns the code and the hint of the error for a part of a file. The code is
// DataLoss, because the part does not follow the format, unless err wraps [Unsupported],
// [TooLarge] or [OutOfRange].
func Refuse(err error) (status.Code, string) {
	if _, ok := errors.AsType[Unsupported](err); ok {
		return status.Unsupported, "write the file without it, or as an Arrow IPC file"
	}
	if _, ok := errors.AsType[TooLarge](err); ok {
		return status.Unsupported, "write smaller row groups, or a page index, which divides them"
	}
	if _, ok := errors.AsType[OutOfRange](err); ok {
		return status.OutOfRange, "leave the column out, or write it with another type: pyarrow writes timestamps in microseconds without use_deprecated_int96_timestamps"
	}
	return status.DataLoss, "the data are damaged or cut short; write them again"
}

// Damaged returns the error for a part of a file at an offset.
func Damaged(what string, offset int64, err error) error {
	code, hint := Refuse(err)
	return status.Errorf(code, "parquet", "%s at byte %d: %w", what, offset, err).WithHint("%s", hint).With("offset", offset)
}

// File is the metadata of a file.
type File struct {
	Schema arrowmeta.Schema
	Rows   int64
	Leaves []Leaf
	Firsts []int // by field of the schema: the number of its first leaf
	Groups []Group
}

// Group is a row group.
type Group struct {
	Rows   int64
	Chunks []Chunk // one for each leaf
}

// Chunk is a leaf of a row group: consecutive pages.
type Chunk struct {
	Offset, Length int64 // in the file
	Values         int64 // levels, which include nulls and empty lists
	Nulls          int64 // null values, and null lists as the writer counts them; -1 if unknown
	Unpacked       int64 // bytes of the pages after decompression
	Text           int64 // bytes of the values of variable length; 0 if unknown
	Codec          Codec

	// The first data page, before which there may be a dictionary. Lookups is how many of the
	// data pages have indices into it, which are the first ones as writers store them.
	Data    int64 // offset in the file
	Lookups int64 // math.MaxInt64 if the metadata do not say

	// The offset index: its position in the file. The size is 0 without an index.
	Index      int64
	IndexBytes int32
}

// Codec is the compression of pages (the enum CompressionCodec).
type Codec int32

// The codecs.
const (
	Uncompressed Codec = iota
	Snappy
	Gzip
	LZO
	Brotli
	LZ4Hadoop // blocks with the frames of Hadoop, or without any
	Zstd
	LZ4
)

var codecNames = [...]string{"", "snappy", "gzip", "lzo", "brotli", "lz4 (Hadoop)", "zstd", "lz4"}

// String returns the name of the codec, "" for uncompressed pages.
func (c Codec) String() string {
	if c >= 0 && int(c) < len(codecNames) {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", int32(c))
}

// fileMetaData is the struct FileMetaData.
type fileMetaData struct {
	version  int32
	elements []element
	rows     int64
	meta     arrowmeta.Metadata
	groups   []rowGroup
}

// rowGroup is the struct RowGroup.
type rowGroup struct {
	rows   int64
	chunks []columnChunk
}

// columnChunk holds fields of the structs ColumnChunk and ColumnMetaData.
type columnChunk struct {
	path                  string // path of another file with the pages
	encrypted, present    bool
	physical              Physical
	codec                 Codec
	values, packed, plain int64 // number of values; bytes of the pages, compressed and not
	data, dictionary      int64 // offset of the first data page, and of the dictionary page
	nulls                 int64
	text                  int64
	pages                 []pageCount
	index                 int64 // offset and size of the offset index
	indexBytes            int32
}

// pageCount is the struct PageEncodingStats: how many pages of a chunk have a type and an
// encoding.
type pageCount struct {
	kind     PageKind
	encoding Encoding
	count    int64
}

// ReadSchema reads the schema of a footer and the number of rows, and skips the row groups.
func ReadSchema(footer []byte) (s arrowmeta.Schema, rows int64, err error) {
	f, err := readMetaData(footer, false)
	if err != nil {
		return s, 0, err
	}
	t, err := newTree(f.elements)
	if err != nil {
		return s, 0, err
	}
	s, err = t.schema(f.meta)
	return s, f.rows, err
}

// ReadFile reads the footer of a file. End is the offset where the footer begins, before
// which all pages lie.
func ReadFile(footer []byte, end int64) (*File, error) {
	m, err := readMetaData(footer, true)
	if err != nil {
		return nil, err
	}
	t, err := newTree(m.elements)
	if err != nil {
		return nil, err
	}
	f := &File{Rows: m.rows, Leaves: t.leaves, Firsts: t.firsts, Groups: make([]Group, len(m.groups))}
	if f.Schema, err = t.schema(m.meta); err != nil {
		return nil, err
	}
	left := m.rows
	for i := range m.groups {
		g := &m.groups[i]
		if g.rows < 0 || g.rows > left {
			return nil, fmt.Errorf("row group %d has %d rows of %d", i, g.rows, m.rows)
		}
		left -= g.rows
		if f.Groups[i], err = g.checked(f.Leaves, end); err != nil {
			return nil, fmt.Errorf("row group %d: %w", i, err)
		}
	}
	if left != 0 {
		return nil, fmt.Errorf("the row groups have %d rows fewer than the file's %d", left, m.rows)
	}
	return f, nil
}

// checked returns the row group if its chunks match the leaves and lie before end.
func (g *rowGroup) checked(leaves []Leaf, end int64) (Group, error) {
	out := Group{Rows: g.rows, Chunks: make([]Chunk, len(g.chunks))}
	if len(g.chunks) != len(leaves) {
		return out, fmt.Errorf("%d columns of %d", len(g.chunks), len(leaves))
	}
	for i := range g.chunks {
		var err error
		if out.Chunks[i], err = g.chunks[i].checked(&leaves[i], g.rows, end); err != nil {
			return out, fmt.Errorf("column %d: %w", i, err)
		}
	}
	return out, nil
}

func (c *columnChunk) checked(leaf *Leaf, rows, end int64) (out Chunk, err error) {
	start := c.data
	if c.dictionary > 0 && c.dictionary < start {
		start = c.dictionary
	}
	switch {
	case c.encrypted:
		return out, Unsupported("its pages are encrypted")
	case c.path != "":
		return out, Unsupported(fmt.Sprintf("its pages are in another file, %q", c.path))
	case !c.present:
		return out, errors.New("no metadata")
	case c.physical != leaf.Physical:
		return out, fmt.Errorf("values of type %v in a column of type %v", c.physical, leaf.Physical)
	case c.values < 0 || c.values > arrowmeta.MaxRows || leaf.MaxRepetition() == 0 && c.values != rows || c.values < rows:
		return out, fmt.Errorf("%d values for %d rows", c.values, rows)
	case c.values == 0: // the chunk has no pages, or one without values, at offset 0
		return Chunk{Offset: int64(len(Magic)), Nulls: c.nulls, Codec: c.codec}, nil
	case start < int64(len(Magic)) || c.packed < 0 || c.packed > end-start || c.plain < 0:
		return out, fmt.Errorf("%d bytes at byte %d lie outside of the data", c.packed, start)
	}
	out = Chunk{Offset: start, Length: c.packed, Values: c.values, Nulls: c.nulls, Unpacked: c.plain, Text: max(c.text, 0), Codec: c.codec, Data: c.data, Lookups: c.lookups()}
	if c.index >= int64(len(Magic)) && c.indexBytes > 0 && c.index <= end-int64(c.indexBytes) {
		out.Index, out.IndexBytes = c.index, c.indexBytes // no reader needs another one
	}
	return out, nil
}

// lookups returns how many data pages have indices into the dictionary.
func (c *columnChunk) lookups() (n int64) {
	if len(c.pages) == 0 {
		return math.MaxInt64
	}
	for _, p := range c.pages {
		if data := p.kind == DataPage || p.kind == DataPageV2; data && (p.encoding == RLEDictionary || p.encoding == PlainDictionary) {
			n += max(p.count, 0)
		}
	}
	return n
}

// lastVersion is the last version of files. The format reserves all numbers after 2, and readers
// must not tell 1 and 2 apart.
const lastVersion = 2

// readMetaData reads the struct FileMetaData.
func readMetaData(footer []byte, groups bool) (*fileMetaData, error) {
	f, r := &fileMetaData{rows: -1}, thrift.New(footer, "footer")
	const many = arrowmeta.MaxFields
	r.Struct(func(id int, kind thrift.Kind) {
		switch {
		case id == 1:
			f.version = r.Int32(kind)
		case id == 2:
			f.elements = thrift.Structs(r, kind, many, "columns", readElement)
		case id == 3:
			f.rows = r.Int64(kind)
		case id == 4 && groups:
			f.groups = thrift.Structs(r, kind, 1<<24, "row groups", readGroup)
		case id == 5:
			f.meta = thrift.Structs(r, kind, many, "pairs of metadata", readPair)
		}
	})
	if f.rows < 0 || f.rows > arrowmeta.MaxRows {
		r.Fail("%d rows", f.rows)
	}
	if f.version > lastVersion && r.Err() == nil {
		return nil, Unsupported(fmt.Sprintf("version %d of the format is not read", f.version))
	}
	return f, r.Err()
}

// readPair reads the struct KeyValue.
func readPair(r *thrift.Reader) (kv arrowmeta.KeyValue) {
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			kv.Key = r.String(kind)
		case 2:
			kv.Value = r.String(kind)
		}
	})
	return kv
}

// readGroup reads the struct RowGroup.
func readGroup(r *thrift.Reader) (g rowGroup) {
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			g.chunks = thrift.Structs(r, kind, arrowmeta.MaxFields, "columns", readChunk)
		case 3:
			g.rows = r.Int64(kind)
		}
	})
	return g
}

// readChunk reads the struct ColumnChunk.
func readChunk(r *thrift.Reader) columnChunk {
	c := columnChunk{nulls: -1}
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			c.path = r.String(kind)
		case 3:
			c.present = true
			r.Nested(kind, func(id int, kind thrift.Kind) { c.read(r, id, kind) })
		case 4:
			c.index = r.Int64(kind)
		case 5:
			c.indexBytes = r.Int32(kind)
		case 8, 9:
			c.encrypted = true
		}
	})
	if !c.present && !c.encrypted {
		r.Fail("a column has no metadata") // at once, so that a list of empty structs takes no memory
	}
	return c
}

// read reads a field of the struct ColumnMetaData.
func (c *columnChunk) read(r *thrift.Reader, id int, kind thrift.Kind) {
	switch id {
	case 1:
		c.physical = Physical(r.Int32(kind))
	case 4:
		c.codec = Codec(r.Int32(kind))
	case 5:
		c.values = r.Int64(kind)
	case 6:
		c.plain = r.Int64(kind)
	case 7:
		c.packed = r.Int64(kind)
	case 9:
		c.data = r.Int64(kind)
	case 11:
		c.dictionary = r.Int64(kind)
	case 12:
		r.Nested(kind, func(id int, kind thrift.Kind) {
			if id == 3 { // null_count of the struct Statistics
				c.nulls = r.Int64(kind)
			}
		})
	case 13:
		c.pages = thrift.Structs(r, kind, 1<<10, "encodings of pages", readPageCount)
	case 16:
		r.Nested(kind, func(id int, kind thrift.Kind) {
			if id == 1 { // unencoded_byte_array_data_bytes of the struct SizeStatistics
				c.text = r.Int64(kind)
			}
		})
	}
}

// readPageCount reads the struct PageEncodingStats.
func readPageCount(r *thrift.Reader) (p pageCount) {
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			p.kind = PageKind(r.Int32(kind))
		case 2:
			p.encoding = Encoding(r.Int32(kind))
		case 3:
			p.count = int64(r.Int32(kind))
		}
	})
	return p
}
