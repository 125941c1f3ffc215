package arrowmeta

import (
	"slices"
	"strings"
)

// Node holds the counts of one column, or of one child, in a record batch.
type Node struct {
	Length int64 // values, nulls included
	Nulls  int64
}

// Buffer is the range of one Arrow buffer in the body of a record batch.
type Buffer struct {
	Offset int64 // from the start of the body
	Length int64 // bytes, as stored, even if the batch is compressed
}

// Compression is how every buffer of a record batch is compressed. A buffer
// that is not empty begins with its decompressed size, 8 bytes little-endian, or
// with -1 if it is stored uncompressed.
type Compression uint8

// The compressions of the format.
const (
	Uncompressed Compression = iota
	LZ4Frame
	ZSTD
)

// String returns the name that Arrow's options use.
func (c Compression) String() string {
	return pick(int(c), "uncompressed", "lz4", "zstd")
}

// RecordBatch is the header of a record batch: how many rows it has, and where
// in its body the buffers are.
type RecordBatch struct {
	Length      int64 // rows
	Compression Compression

	nodes    []Node
	buffers  []Buffer
	variadic []int64 // data buffers of each view column
	before   []int   // running sums of variadic: data buffers of each view column and all columns before it
}

// Clone returns a copy. It stays as it is when a scan goes on.
func (b *RecordBatch) Clone() *RecordBatch {
	c := *b
	c.nodes, c.buffers, c.variadic, c.before = slices.Clone(b.nodes), slices.Clone(b.buffers), slices.Clone(b.variadic), slices.Clone(b.before)
	return &c
}

// Node returns the counts of a column. The batch must contain it: after a column of
// an unknown kind no column can be located.
func (b *RecordBatch) Node(c *Column) Node { return b.nodes[c.node] }

// Buffers returns the buffers of a column without its children's; as for Node, the column
// must be located. The order follows the format: the validity bitmap, if the column has
// one, the buffers of the type, and the data buffers of a view. The caller must not keep or
// change them.
func (b *RecordBatch) Buffers(c *Column) []Buffer {
	first, n := c.buffer, c.buffers
	if c.views > 0 {
		first += b.before[c.views-1]
	}
	if c.view {
		n += int(b.variadic[c.views])
	}
	return b.buffers[first : first+n : first+n]
}

// decode reads the table RecordBatch of a message with custom metadata. It does not compare the
// buffers with the body.
func (b *RecordBatch) decode(t table, custom Metadata) {
	t.known("RecordBatch", 12)
	b.Length = t.i64(4, 0)
	b.Compression = Uncompressed
	if c, ok := t.child(10); ok {
		b.Compression = compression(c)
	} else if name, ok := custom.Get(compressionKey); ok {
		b.Compression = namedCompression(t, name)
	}
	b.nodes, b.buffers = b.nodes[:0], b.buffers[:0]
	pos, n := t.vector(6, 16)
	for ; n > 0; n, pos = n-1, pos+16 {
		b.nodes = append(b.nodes, Node{t.f.i64(pos), t.f.i64(pos + 8)})
	}
	pos, n = t.vector(8, 16)
	for ; n > 0; n, pos = n-1, pos+16 {
		b.buffers = append(b.buffers, Buffer{t.f.i64(pos), t.f.i64(pos + 8)})
	}
	b.variadic = b.variadic[:0]
	pos, n = t.vector(12, 8)
	for ; n > 0; n, pos = n-1, pos+8 {
		b.variadic = append(b.variadic, t.f.i64(pos))
	}
}

// compression reads the table BodyCompression.
func compression(c table) Compression {
	c.known("BodyCompression", 6)
	codec, method := c.u8(4, 0), c.u8(6, 0)
	if codec > 1 || method != 0 {
		c.f.refuse(c.pos, "unknown compression %d, method %d", codec, method)
	}
	return LZ4Frame + Compression(codec)
}

// compressionKey is the key that Arrow 0.17 uses for the name of a record batch's compression in
// the custom metadata of the message. Later versions have the same buffers.
const compressionKey = "ARROW:experimental_compression"

func namedCompression(t table, name string) Compression {
	switch strings.ToLower(name) {
	case "lz4", "lz4_frame":
		return LZ4Frame
	case "zstd":
		return ZSTD
	}
	t.f.refuse(t.pos, "unknown compression %q", name)
	return Uncompressed
}

// DictionaryBatch is the header of a dictionary batch, which holds one column:
// the values of the dictionary.
type DictionaryBatch struct {
	RecordBatch
	ID     int64
	Delta  bool    // appends to the dictionary instead of replacing it
	Values *Column // where the values are in the batch
}
