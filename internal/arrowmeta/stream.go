package arrowmeta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/meshfeed/meshfeed/core/status"
)

// A message begins with continuation and the length of its metadata; before
// Arrow 0.15 it began with the length alone.
const continuation = 0xFFFFFFFF

// prefix reads the start of a message. Skip is the number of bytes before the metadata.
// Length is the length of the metadata: 0 at the end of the stream, negative if it is
// invalid.
func prefix(head []byte) (skip int, length int64) {
	first := binary.LittleEndian.Uint32(head)
	if first != continuation {
		return 4, int64(int32(first))
	}
	if len(head) < 8 {
		return 8, -1
	}
	return 8, int64(int32(binary.LittleEndian.Uint32(head[4:])))
}

// IsStream reports whether size bytes that begin with head may be a stream.
func IsStream(head []byte, size int64) bool {
	if len(head) < front || isSafetensors(string(head)) || isTFRecord(string(head)) {
		return false
	}
	skip, n := prefix(head)
	return skip == 8 || n >= 16 && n <= MaxMessage && n <= size
}

// streamReader reads the messages of a stream one after the other.
type streamReader struct {
	window
	file  *File
	off   int64 // offset of the next message
	ahead int   // bytes worth reading beyond a message's prefix
	fb    flatbuf
}

// ReadStream is Read for a stream. It reads the metadata of every message, and the
// bodies only if they are so small that skipping them would cost more.
func ReadStream(r io.ReaderAt, size int64, digest io.Writer) (*File, error) {
	s := &streamReader{window: window{r: r, size: size}, file: &File{Stream: true, Size: size}, ahead: 4 << 10}
	for n := 0; ; n++ {
		at := position{"message", n, s.off}
		meta, skip, err := s.metadata(at)
		if err != nil {
			return nil, err
		}
		if meta == nil {
			return s.file, s.end(at, skip, n)
		}
		_, _ = digest.Write(meta)
		if err := s.message(at, meta, skip); err != nil {
			return nil, err
		}
	}
}

// metadata reads the metadata of the next message. They are nil at the end-of-stream
// marker.
func (s *streamReader) metadata(at position) (meta []byte, skip int, err error) {
	left := s.size - s.off
	if left < 4 {
		return nil, 0, at.unended(errors.New("the stream has no end-of-stream marker"))
	}
	head, err := s.bytes(s.off, int(min(left, 8)), s.ahead)
	if err != nil {
		return nil, 0, at.unread(err)
	}
	skip, length := prefix(head)
	switch {
	case left < int64(skip):
		return nil, 0, at.unended(errors.New("the stream has no end-of-stream marker"))
	case length == 0:
		return nil, skip, nil
	case length < 0 || length > MaxMessage:
		return nil, 0, at.damaged(fmt.Errorf("metadata of %d bytes", length))
	case length > left-int64(skip):
		return nil, 0, at.damaged(fmt.Errorf("the metadata take %d bytes, but only %d are left", length, left-int64(skip)))
	}
	meta, err = s.bytes(s.off+int64(skip), int(length), s.ahead)
	if err != nil {
		return nil, 0, at.unread(err)
	}
	return meta, skip, nil
}

// message decodes the metadata of a message, records it, and moves past its body.
func (s *streamReader) message(at position, meta []byte, skip int) error {
	s.fb.reset(meta)
	m := decodeMessage(&s.fb)
	if s.fb.err != nil {
		return at.damaged(s.fb.err)
	}
	block := Block{s.off, int64(skip + len(meta)), m.body}
	if left := s.size - block.Body(); m.body > left {
		return at.damaged(fmt.Errorf("the body takes %d bytes, but only %d are left", m.body, left))
	}
	if err := s.record(at, m, block); err != nil {
		return err
	}
	s.off = block.End()
	s.ahead = len(meta) + 64
	if m.body < readAhead/4 {
		s.ahead = readAhead
	}
	return nil
}

// record adds the schema or the position of a batch to the file.
func (s *streamReader) record(at position, m message, block Block) error {
	f := s.file
	if first := at.number == 0; first != (m.kind == schemaMessage) {
		return at.damaged(fmt.Errorf("a %s; a stream has one schema, as its first message", messageName(m.kind)))
	}
	switch m.kind {
	case schemaMessage:
		f.setSchema(m.header, m.version)
		if s.fb.err != nil {
			return at.damaged(s.fb.err)
		}
	case recordBatchMessage:
		f.Batches = append(f.Batches, block)
	case dictionaryMessage:
		f.Dictionaries = append(f.Dictionaries, block)
	case tensorMessage, sparseTensorMessage:
		return at.error(status.Unsupported, fmt.Errorf("a %s", messageName(m.kind))).
			WithHint("only record batches can be read")
	default:
		return at.damaged(fmt.Errorf("a %s", messageName(m.kind)))
	}
	return nil
}

// end makes sure that a schema was read, and that nothing follows the end marker.
func (s *streamReader) end(at position, skip, messages int) error {
	if messages == 0 {
		return at.damaged(errors.New("the stream has no schema"))
	}
	if left := s.size - s.off - int64(skip); left > 0 {
		return at.error(status.DataLoss, fmt.Errorf("%d bytes follow the end of the stream", left)).
			WithHint("streams that were joined must be taken apart")
	}
	return nil
}
