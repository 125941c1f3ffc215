// Package ipcfile writes Arrow IPC files that are laid out for gathering: without
// compression, and with every buffer at a multiple of 64 bytes from the start of the
// file. So a row of a fixed shape can be copied straight from a mapping of the file.
//
// The caller gives the levels of package columns, one list of them for each field of the
// schema. Dictionaries and views are not written.
package ipcfile

import (
	"encoding/binary"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/columns"
)

const (
	magic     = "ARROW1"
	alignment = 64
	version5  = 4 // version of the metadata: Arrow 1.0 and later
)

// The kinds of messages, with the numbers of the union MessageHeader.
const (
	schemaMessage      = 1
	recordBatchMessage = 3
)

// Writer writes one file. It keeps the first error and then writes nothing.
type Writer struct {
	out    io.Writer
	at     int64 // bytes written
	schema *arrowmeta.Schema
	blocks []block
	err    error
}

// block is the position of a record batch.
type block struct {
	offset, body int64
	metadata     int32 // bytes, with the prefix
}

// New returns a writer that has written the schema. The error is an error of out, or
// says that package columns does not have a type.
func New(out io.Writer, schema *arrowmeta.Schema) (*Writer, error) {
	w := &Writer{out: out, schema: schema}
	w.write([]byte(magic), alignment)
	b := flatbuffers.NewBuilder(1 << 10)
	header, err := putSchema(b, schema)
	if err != nil {
		return nil, err
	}
	w.message(b, schemaMessage, header, 0)
	return w, w.err
}

// Size returns the bytes written so far.
func (w *Writer) Size() int64 { return w.at }

// Write writes a record batch of some rows. Levels has the levels of each field of the schema.
func (w *Writer) Write(rows int, levels [][]columns.Level) error {
	var buffers [][]byte
	var nodes [][2]int64
	for _, list := range levels {
		for _, l := range list {
			nodes = append(nodes, [2]int64{int64(l.Length), int64(l.Nulls)})
			buffers = append(buffers, l.Validity)
			switch l.Kind {
			case columns.Values:
				buffers = append(buffers, l.Data)
			case columns.List:
				buffers = append(buffers, l.Offsets)
			case columns.Text:
				buffers = append(buffers, l.Offsets, l.Data)
			}
		}
	}
	body := int64(0)
	places := make([][2]int64, len(buffers))
	for i, buffer := range buffers {
		places[i] = [2]int64{body, int64(len(buffer))}
		body += padded(int64(len(buffer)), alignment)
	}
	at := w.at
	b := flatbuffers.NewBuilder(256 + 16*(len(nodes)+len(buffers)))
	w.message(b, recordBatchMessage, putBatch(b, int64(rows), nodes, places), body)
	w.blocks = append(w.blocks, block{at, body, int32(w.at - at)})
	for _, buffer := range buffers {
		w.write(buffer, alignment)
	}
	return w.err
}

// Close writes the footer. It does not close the file.
func (w *Writer) Close() error {
	w.write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, 1) // the end of the stream
	b := flatbuffers.NewBuilder(1<<10 + 24*len(w.blocks))
	schema, err := putSchema(b, w.schema)
	if err != nil {
		return err
	}
	b.StartVector(24, 0, 8)
	none := b.EndVector(0)
	b.StartVector(24, len(w.blocks), 8)
	for i := len(w.blocks) - 1; i >= 0; i-- {
		b.Prep(8, 24)
		b.PrependInt64(w.blocks[i].body)
		b.Pad(4)
		b.PrependInt32(w.blocks[i].metadata)
		b.PrependInt64(w.blocks[i].offset)
	}
	blocks := b.EndVector(len(w.blocks))
	b.StartObject(5)
	b.PrependInt16Slot(0, version5, 0)
	b.PrependUOffsetTSlot(1, schema, 0)
	b.PrependUOffsetTSlot(2, none, 0)
	b.PrependUOffsetTSlot(3, blocks, 0)
	b.Finish(b.EndObject())
	footer := b.FinishedBytes()
	if len(footer) > arrowmeta.MaxFooter {
		return fmt.Errorf("the footer of %d record batches has %d bytes, but at most %d are read", len(w.blocks), len(footer), arrowmeta.MaxFooter)
	}
	w.write(footer, 1)
	w.write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), 1)
	w.write([]byte(magic), 1)
	return w.err
}

// message writes a message without its body. The body then begins at a multiple of 64.
func (w *Writer) message(b *flatbuffers.Builder, kind byte, header flatbuffers.UOffsetT, body int64) {
	b.StartObject(5)
	b.PrependInt16Slot(0, version5, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, body, 0)
	b.Finish(b.EndObject())
	metadata := b.FinishedBytes()
	n := padded(w.at+8+int64(len(metadata)), alignment) - w.at - 8
	prefix := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(n))
	w.write(prefix, 1)
	w.write(metadata, alignment)
}

// write writes bytes, then zeros up to a multiple of a power of two.
func (w *Writer) write(p []byte, multiple int64) {
	var zeros [alignment]byte
	for _, part := range [2][]byte{p, zeros[:padded(w.at+int64(len(p)), multiple)-w.at-int64(len(p))]} {
		if w.err != nil || len(part) == 0 {
			continue
		}
		var n int
		n, w.err = w.out.Write(part)
		w.at += int64(n)
	}
}

// padded returns the next multiple of a power of two.
func padded(n, multiple int64) int64 { return (n + multiple - 1) &^ (multiple - 1) }

// putBatch adds the table RecordBatch.
func putBatch(b *flatbuffers.Builder, rows int64, nodes, buffers [][2]int64) flatbuffers.UOffsetT {
	pairs := func(list [][2]int64) flatbuffers.UOffsetT {
		b.StartVector(16, len(list), 8)
		for i := len(list) - 1; i >= 0; i-- {
			b.PrependInt64(list[i][1])
			b.PrependInt64(list[i][0])
		}
		return b.EndVector(len(list))
	}
	n, p := pairs(nodes), pairs(buffers)
	b.StartObject(5)
	b.PrependInt64Slot(0, rows, 0)
	b.PrependUOffsetTSlot(1, n, 0)
	b.PrependUOffsetTSlot(2, p, 0)
	return b.EndObject()
}
