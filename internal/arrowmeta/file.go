package arrowmeta

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// Bounds on metadata, in bytes. A message of 64 MiB has room for a million columns,
// and a footer of 256 MiB for ten million record batches.
const (
	MaxMessage = 64 << 20
	MaxFooter  = 256 << 20
)

// File is the metadata of an Arrow IPC file or stream. It is not changed after
// Read; all methods are safe for concurrent use if the reader is.
type File struct {
	Schema       Schema
	Stream       bool     // read message by message instead of from a footer
	Size         int64    // bytes
	Batches      []Block  // in the order of their rows
	Dictionaries []Block  // in the order of the footer or stream
	Columns      []Column // one for each of Schema.Fields

	layout *layout
}

// Block is the position of a message: of a record batch or a dictionary batch.
type Block struct {
	Offset  int64 // from the start of the file
	MetaLen int64 // bytes of the length prefix and the metadata
	BodyLen int64 // bytes of the body, which follows
}

// Body returns the offset of the body. The offsets of buffers count from there.
func (b Block) Body() int64 { return b.Offset + b.MetaLen }

// End returns the offset after the body.
func (b Block) End() int64 { return b.Offset + b.MetaLen + b.BodyLen }

// FirstUser returns the first record batch that a dictionary batch counts for. In a file, it
// counts for all of them; in a stream, for the batches that follow.
func (f *File) FirstUser(dictionary Block) int {
	if !f.Stream {
		return 0
	}
	i, _ := slices.BinarySearchFunc(f.Batches, dictionary.Offset, func(b Block, off int64) int { return cmp.Compare(b.Offset, off) })
	return i
}

// Magic is what an Arrow IPC file begins and ends with.
const Magic = "ARROW1"

const (
	front   = 8  // bytes of the magic at the front, padded
	trailer = 10 // bytes after the footer: its size, then the magic
)

// IsFile reports whether data that begin with head are an Arrow IPC file.
func IsFile(head []byte) bool {
	return len(head) >= front && string(head[:len(Magic)]) == Magic
}

// EndsFile reports whether data that end with last are an Arrow IPC file.
func EndsFile(last []byte) bool {
	return len(last) >= trailer && string(last[len(last)-len(Magic):]) == Magic
}

// Read reads the metadata of a file or stream of size bytes. It does not read the
// headers of a file's record batches; [File.Scan] does. The error is DataLoss for
// damaged data, with the attribute "offset", and IO for an error of r.
func Read(r io.ReaderAt, size int64) (*File, error) {
	w := window{r: r, size: size}
	head, err := w.bytes(0, int(min(size, headBytes)), 0)
	if err != nil {
		return nil, position{"start", -1, 0}.unread(err)
	}
	switch {
	case IsFile(head):
		return ReadFile(r, size, io.Discard)
	case IsStream(head, size):
		return ReadStream(r, size, io.Discard)
	}
	return nil, Foreign(r, size)
}

// ReadFile is Read for an Arrow IPC file. It writes the footer to digest, a hash. The
// package imports no hash itself: crypto/sha256 would add 39 KB to the compressed
// WebAssembly module.
func ReadFile(r io.ReaderAt, size int64, digest io.Writer) (*File, error) {
	end := position{"end of the file", -1, max(size-trailer, 0)}
	if size < front+trailer {
		return nil, end.unended(errors.New("no footer"))
	}
	w := window{r: r, size: size}
	last, err := w.bytes(end.offset, trailer, 0)
	if err != nil {
		return nil, end.unread(err)
	}
	at, n, err := findFooter(last, size)
	if err != nil {
		return nil, err
	}
	footer, err := w.bytes(at.offset, n, 0)
	if err != nil {
		return nil, at.unread(err)
	}
	_, _ = digest.Write(footer)
	f := &File{Size: size}
	if err := f.decodeFooter(footer, at.offset); err != nil {
		return nil, at.damaged(err)
	}
	return f, nil
}

// FooterOf returns the offset and the size of the footer of an Arrow IPC file, which has
// size bytes, from its last ones. Found is false if these bytes do not end such a file. The
// errors are as in [Read].
func FooterOf(last []byte, size int64) (offset int64, n int, found bool, err error) {
	if !EndsFile(last) {
		return 0, 0, false, nil
	}
	at, n, err := findFooter(last[len(last)-trailer:], size)
	return at.offset, n, true, err
}

// ReadFooter reads the schema of the footer that begins at an offset. The errors are as in
// [Read].
func ReadFooter(footer []byte, offset int64) (Schema, error) {
	var f File
	if err := f.decodeFooter(footer, offset); err != nil {
		return Schema{}, position{"footer", -1, offset}.damaged(err)
	}
	return f.Schema, nil
}

// findFooter returns the position and the size of the footer from the last bytes of
// a file.
func findFooter(last []byte, size int64) (at position, n int, err error) {
	end := position{"end of the file", -1, size - trailer}
	n = int(int32(binary.LittleEndian.Uint32(last)))
	switch {
	case string(last[4:]) != Magic:
		return at, 0, end.unended(fmt.Errorf("no footer: the last bytes are %q instead of %q", last[4:], Magic))
	case n <= 0 || int64(n) > end.offset-front:
		return at, 0, end.damaged(fmt.Errorf("a footer of %d bytes in a file of %d", n, size))
	case n > MaxFooter:
		return at, 0, end.error(status.Unsupported, fmt.Errorf("a footer of %d bytes, but at most %d are read", n, MaxFooter)).
			WithHint("write larger record batches")
	}
	return position{"footer", -1, end.offset - int64(n)}, n, nil
}

// decodeFooter reads the table Footer. The footer begins at the offset end, where
// the last message must have ended.
func (f *File) decodeFooter(footer []byte, end int64) error {
	var fb flatbuf
	fb.reset(footer)
	t := fb.root()
	t.known("Footer", 12)
	v := decodeVersion(t)
	if key := metadata(t, 12).Reserved(); key != "" {
		fb.refuse(t.pos, "the key %q of the footer is not known here", key)
	}
	schema, ok := t.child(6)
	if !ok {
		fb.fail(0, "no schema")
	}
	f.setSchema(schema, v)
	f.Dictionaries = blocks(t, 8)
	f.Batches = blocks(t, 10)
	if fb.err != nil {
		return fb.err
	}
	return cmp.Or(checkBlocks("record batch", f.Batches, end), checkBlocks("dictionary batch", f.Dictionaries, end))
}

// setSchema reads the table Schema.
func (f *File) setSchema(t table, v version) {
	f.Schema = decodeSchema(t)
	f.layout = newLayout(f.Schema.Fields, v)
	f.Columns = f.layout.columns
}

// blocks reads a vector of structs Block: offset, metadata length and body
// length, padded to 24 bytes.
func blocks(t table, slot int) []Block {
	pos, n := t.vector(slot, 24)
	if n == 0 {
		return nil
	}
	list := make([]Block, n)
	for i := range list {
		at := pos + 24*i
		list[i] = Block{t.f.i64(at), int64(t.f.i32(at + 8)), t.f.i64(at + 16)}
	}
	return list
}

// checkBlocks returns an error unless all blocks lie between the magic and the
// footer and do not overlap.
func checkBlocks(what string, list []Block, end int64) error {
	sorted := true
	for i, b := range list {
		left := end - b.Offset
		if b.Offset < front || b.MetaLen < 8 || b.BodyLen < 0 || b.MetaLen > left || b.BodyLen > left-b.MetaLen {
			return fmt.Errorf("%s %d of %d + %d bytes at byte %d lies outside the data", what, i, b.MetaLen, b.BodyLen, b.Offset)
		}
		sorted = sorted && (i == 0 || list[i-1].End() <= b.Offset)
	}
	if sorted {
		return nil
	}
	starts, ends := make([]int, len(list)), make([]int, len(list))
	for i, b := range list {
		starts[i], ends[i] = int(b.Offset), int(b.End())
	}
	slices.Sort(starts)
	slices.Sort(ends)
	for i := 1; i < len(list); i++ {
		if ends[i-1] > starts[i] { // fewer than i blocks end before the block that starts here
			return fmt.Errorf("two %ses overlap at byte %d", what, starts[i])
		}
	}
	return nil
}
