package arrowmeta

import (
	"fmt"
	"io"

	"github.com/meshfeed/meshfeed/core/status"
)

// Scan reads and checks the headers of the record batches first to last-1, and
// calls visit with each in turn. The batch is reused: visit must not keep it.
// An error of visit ends the scan and is returned as it is. Ranges may be
// scanned concurrently.
func (f *File) Scan(r io.ReaderAt, first, last int, visit func(i int, b *RecordBatch) error) error {
	if first < 0 || last > len(f.Batches) || first > last {
		return status.Errorf(status.OutOfRange, "arrowmeta", "record batches %d to %d of %d", first, last, len(f.Batches))
	}
	s := scan{w: window{r: r, size: f.Size}, blocks: f.Batches, what: "record batch", kind: recordBatchMessage}
	var b RecordBatch
	return s.each(first, last,
		func(m message) error { return f.layout.decode(&s.fb, m, m.header, &b) },
		func(i int) error { return visit(i, &b) })
}

// Batch reads and checks the header of one record batch.
func (f *File) Batch(r io.ReaderAt, i int) (*RecordBatch, error) {
	var batch *RecordBatch
	err := f.Scan(r, i, i+1, func(_ int, b *RecordBatch) error {
		batch = b
		return nil
	})
	return batch, err
}

// ScanDictionaries is [File.Scan] for all dictionary batches. Such a batch has one column
// with the dictionary's values.
func (f *File) ScanDictionaries(r io.ReaderAt, visit func(i int, d *DictionaryBatch) error) error {
	s := scan{w: window{r: r, size: f.Size}, blocks: f.Dictionaries, what: "dictionary batch", kind: dictionaryMessage}
	layouts := f.dictionaryLayouts()
	var d DictionaryBatch
	return s.each(0, len(f.Dictionaries),
		func(m message) error { return d.decode(&s.fb, m, layouts) },
		func(i int) error { return visit(i, &d) })
}

// dictionaryLayouts returns the layout of each dictionary by its number.
func (f *File) dictionaryLayouts() map[int64]*layout {
	layouts := map[int64]*layout{}
	var add func(fields []Field)
	add = func(fields []Field) {
		for i := range fields {
			if d := fields[i].Dictionary; d != nil && layouts[d.ID] == nil {
				values := fields[i]
				values.Dictionary = nil
				layouts[d.ID] = newLayout([]Field{values}, f.layout.version)
			}
			add(fields[i].Type.Children)
		}
	}
	add(f.Schema.Fields)
	return layouts
}

// decode reads the table DictionaryBatch.
func (d *DictionaryBatch) decode(fb *flatbuf, m message, layouts map[int64]*layout) error {
	m.header.known("DictionaryBatch", 8)
	d.ID, d.Delta = m.header.i64(4, 0), m.header.bool(8)
	data, ok := m.header.child(6)
	if !ok {
		fb.fail(0, "dictionary batch without data")
	}
	if fb.err != nil {
		return fb.err
	}
	l := layouts[d.ID]
	if l == nil {
		return fmt.Errorf("no field uses dictionary %d", d.ID)
	}
	d.Values = &l.columns[0]
	return l.decode(fb, m, data, &d.RecordBatch)
}

// decode reads the table RecordBatch of message m and checks it.
func (l *layout) decode(fb *flatbuf, m message, t table, b *RecordBatch) error {
	if l.versioned && m.version != l.version {
		fb.fail(0, "metadata version %d differs from the version of the schema, which has unions or run-end encoding", m.version+1)
	}
	b.decode(t, m.custom)
	if fb.err != nil {
		return fb.err
	}
	return l.check(b, m.body)
}

// scan reads the messages of blocks in order.
type scan struct {
	w      window
	blocks []Block
	what   string // a name of a block in errors: "record batch"
	kind   uint8  // kind of the messages
	fb     flatbuf
}

// each decodes and visits the blocks first to last-1. An error of decode is reported
// as damage of the file.
func (s *scan) each(first, last int, decode func(m message) error, visit func(i int) error) error {
	for i := first; i < last; i++ {
		m, err := s.message(i)
		if err == nil {
			err = s.damaged(i, decode(m))
		}
		if err == nil {
			err = visit(i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) damaged(i int, err error) error {
	if err == nil {
		return nil
	}
	return s.position(i).damaged(err)
}

func (s *scan) position(i int) position { return position{s.what, i, s.blocks[i].Offset} }

// message reads the metadata of one block.
func (s *scan) message(i int) (message, error) {
	block := s.blocks[i]
	if block.MetaLen > MaxMessage {
		return message{}, s.damaged(i, fmt.Errorf("metadata of %d bytes", block.MetaLen))
	}
	meta, err := s.w.bytes(block.Offset, int(block.MetaLen), 0)
	if err != nil {
		return message{}, s.position(i).unread(err)
	}
	skip, length := prefix(meta)
	if length != block.MetaLen-int64(skip) {
		return message{}, s.damaged(i, fmt.Errorf("metadata of %d bytes, but the footer says %d", length, block.MetaLen-int64(skip)))
	}
	s.fb.reset(meta[skip:])
	m := decodeMessage(&s.fb)
	switch {
	case s.fb.err != nil:
		return m, s.damaged(i, s.fb.err)
	case m.kind != s.kind:
		return m, s.damaged(i, fmt.Errorf("a %s", messageName(m.kind)))
	case m.body > block.BodyLen:
		return m, s.damaged(i, fmt.Errorf("a body of %d bytes, but the footer says %d", m.body, block.BodyLen))
	}
	return m, nil
}
