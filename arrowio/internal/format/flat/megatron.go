package flat

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

const (
	megatronMagic  = "MMIDIDX\x00\x00"
	megatronHeader = len(megatronMagic) + 8 + 1 + 8 + 8 // version, type, sequences, ends of documents
)

// megatronTypes has the integers among the types of Megatron by code.
var megatronTypes = map[byte]dtype.Type{1: dtype.Uint8, 2: dtype.Int8, 3: dtype.Int16, 4: dtype.Int32, 5: dtype.Int64, 8: dtype.Uint16}

// Documents are a pair of files of Megatron as one blob: the values, and behind them the offsets of
// the documents, as Arrow's lists have them. The offsets are made from the index and kept in memory,
// 8 bytes for each document.
type Documents struct {
	index, values blob.Blob
	typ           dtype.Type
	offsets       []byte // in elements: one more than there are documents
}

// OpenDocuments opens the values beside an index, and reads the index. It takes over the index, also
// if it fails.
func OpenDocuments(ctx context.Context, opener blob.Opener, index blob.Blob) (blob.Blob, error) {
	d := &Documents{index: index}
	name := strings.TrimSuffix(index.Name(), path.Ext(index.Name())) + ".bin"
	e, err := opener.Stat(ctx, name)
	if err == nil {
		d.values, err = opener.Open(ctx, e)
	}
	if err != nil {
		_ = index.Close()
		if status.CodeOf(err) == status.NotFound {
			return nil, status.Errorf(status.NotFound, "arrowio", "%s: there is no %s, which should have the tokens of this index", index.Name(), name).
				WithHint("copy both files").With("path", index.Name())
		}
		return nil, err
	}
	if err := d.read(ctx); err != nil {
		_ = d.Close()
		return nil, err
	}
	if _, versioned := index.(blob.Versioned); versioned {
		if _, versioned = d.values.(blob.Versioned); versioned {
			return versionedDocuments{d}, nil
		}
	}
	return d, nil
}

// read reads the index, and checks that it describes all the values.
func (d *Documents) read(ctx context.Context) error {
	head := make([]byte, megatronHeader)
	if n := d.index.Size(); n < int64(len(head)) {
		return d.damaged("the index has %d bytes, fewer than its header", n)
	}
	if err := blob.ReadFull(ctx, d.index, head, 0); err != nil {
		return blob.ReadError(d.index.Name(), err)
	}
	if string(head[:len(megatronMagic)]) != megatronMagic {
		return d.fault(status.Unsupported, "it does not begin as an index of Megatron does").WithHint("name a file of data")
	}
	if version := binary.LittleEndian.Uint64(head[9:]); version != 1 {
		return d.fault(status.Unsupported, "the index has version %d, and only 1 is read", version).WithHint("write the pair again with Megatron's tools/preprocess_data.py")
	}
	var known bool
	if d.typ, known = megatronTypes[head[17]]; !known {
		return d.fault(status.Unsupported, "the type of its elements has the code %d, which stands for no integers", head[17]).WithHint("store tokens as integers")
	}
	sequences, ends, size := binary.LittleEndian.Uint64(head[18:]), binary.LittleEndian.Uint64(head[26:]), uint64(d.index.Size())-uint64(len(head))
	if sequences > size/12 || ends > size/8 || ends == 0 || 12*sequences+8*ends != size && 13*sequences+8*ends != size {
		return d.damaged("%d sequences and %d ends of documents do not fit the %d bytes of the index", sequences, ends, d.index.Size())
	}
	return d.locate(ctx, int64(sequences), int64(ends))
}

// locate sets the offsets. After the header, the index has the length of every sequence in 32 bits, the
// first byte of every sequence, and the number of sequences before each end of a document. The first
// end is 0.
func (d *Documents) locate(ctx context.Context, sequences, ends int64) error {
	first := int64(megatronHeader)
	lengths, starts := d.numbers(ctx, first, 4), d.numbers(ctx, first+4*sequences, 8)
	before := d.numbers(ctx, first+12*sequences, 8)
	d.offsets = make([]byte, 0, 8*ends)
	sequence, elements, size := int64(0), int64(0), int64(d.typ.Size())
	for doc := range ends {
		end := before.next()
		if end < sequence || end > sequences || doc == 0 && end != 0 {
			return cmp.Or(before.err, d.damaged("document %d begins with sequence %d and ends before sequence %d of %d", doc-1, sequence, end, sequences))
		}
		for ; sequence < end; sequence++ {
			start, length := starts.next(), lengths.next()
			if start != elements*size || length < 0 || length > (d.values.Size()-start)/size {
				return cmp.Or(starts.err, lengths.err, d.damaged("sequence %d has %d elements from byte %d of %d on, and the one before it ends at byte %d", sequence, length, start, d.values.Size(), elements*size))
			}
			elements += length
		}
		d.offsets = binary.LittleEndian.AppendUint64(d.offsets, uint64(elements))
	}
	if sequence != sequences || elements*size != d.values.Size() {
		return d.damaged("the documents have %d of %d sequences, and %d of the %d bytes of %s", sequence, sequences, elements*size, d.values.Size(), d.values.Name())
	}
	return nil
}

// numbers are the integers of an index from a byte on.
type numbers struct {
	*bufio.Reader
	name  string
	width int // bytes of an integer
	err   error
}

func (d *Documents) numbers(ctx context.Context, at int64, width int) *numbers {
	r := io.NewSectionReader(blob.Reader(ctx, d.index), at, d.index.Size()-at)
	return &numbers{Reader: bufio.NewReaderSize(r, 1<<20), name: d.index.Name(), width: width}
}

// next returns the next integer, or -1 if it cannot be read.
func (n *numbers) next() int64 {
	b, err := n.Peek(n.width)
	if err != nil {
		n.err = blob.ReadError(n.name, err)
		return -1
	}
	_, _ = n.Discard(n.width) // what was peeked
	return arrowtype.Integer(b, n.width)
}

func (d *Documents) damaged(format string, args ...any) error {
	return d.fault(status.DataLoss, format, args...).WithHint("write or copy the .idx and the .bin again")
}

func (d *Documents) fault(code status.Code, format string, args ...any) *status.Error {
	return status.Errorf(code, "arrowio", "%s: %s", d.index.Name(), fmt.Sprintf(format, args...)).With("path", d.index.Name())
}

// Name implements blob.Blob.
func (d *Documents) Name() string { return d.index.Name() }

// Size implements blob.Blob.
func (d *Documents) Size() int64 { return d.values.Size() + int64(len(d.offsets)) }

// Identity implements blob.Blob.
func (d *Documents) Identity() string { return d.index.Identity() + "\n" + d.values.Identity() }

// ReadAt implements blob.Blob.
func (d *Documents) ReadAt(ctx context.Context, p []byte, offset int64) (n int, err error) {
	return format.Tailed{Blob: d.values, Tail: d.offsets}.ReadAt(ctx, p, offset)
}

// Check implements blob.Blob.
func (d *Documents) Check() error { return cmp.Or(d.index.Check(), d.values.Check()) }

// Close implements blob.Blob.
func (d *Documents) Close() error {
	err := d.index.Close()
	if d.values != nil {
		err = errors.Join(err, d.values.Close())
	}
	return err
}

// versionedDocuments are documents in files with versions.
type versionedDocuments struct{ *Documents }

// Version implements blob.Versioned.
func (d versionedDocuments) Version() string {
	return d.index.(blob.Versioned).Version() + "\n" + d.values.(blob.Versioned).Version()
}

// DocumentsOf returns the documents that a file reads from, or nil.
func DocumentsOf(content *resident.File) *Documents {
	switch d := content.Blob.(type) {
	case *Documents:
		return d
	case versionedDocuments:
		return d.Documents
	}
	return nil
}

// Open returns the contents of a file with the documents. A record is a document.
func (d *Documents) Open(content *resident.File) format.Contents {
	column := array{typ: d.typ}.column()
	column.Name = "item"
	column = arrowmeta.Field{Name: Field, Type: arrowmeta.Type{Kind: arrowmeta.LargeList, Children: []arrowmeta.Field{column}}}
	c := &documentFile{file: file{content: content, width: int64(d.typ.Size())}, of: d}
	c.Facts = format.Metadata{Format: "megatron", Schema: &arrowmeta.Schema{Fields: []arrowmeta.Field{column}}, Located: []bool{true}}
	documents := int64(len(d.offsets)/8 - 1)
	for first := int64(0); first < documents; {
		last := first + 1
		for last < documents && (d.offset(last)-d.offset(first))*c.width < unitBytes {
			last++
		}
		c.firsts = append(c.firsts, first)
		c.Facts.Units = append(c.Facts.Units, resident.Extent{Offset: d.offset(first) * c.width, Length: (d.offset(last) - d.offset(first)) * c.width})
		first = last
	}
	c.firsts = append(c.firsts, documents)
	c.Facts.Digest = sha256.Sum256(append(fmt.Appendf(nil, "megatron %v ", d.typ), d.offsets...))
	return c
}

// offset returns the number of elements before a document.
func (d *Documents) offset(document int64) int64 {
	return int64(binary.LittleEndian.Uint64(d.offsets[8*document:]))
}

// documentFile is the contents of a file with documents.
type documentFile struct {
	file
	of     *Documents
	firsts []int64 // by unit: its first document; then the number of all documents
}

// Scan implements format.Contents. It reads nothing.
func (c *documentFile) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return documentUnit{of: c.of, first: c.firsts[i], last: c.firsts[i+1]} }, visit)
}

// Verify implements format.Contents. The index was checked when it was opened, and every bit pattern is
// a valid element.
func (c *documentFile) Verify(ctx context.Context, _ []int, progress func(bytes int64)) error {
	return format.ReadAll(ctx, c.content, progress)
}

// documentUnit is a run of documents.
type documentUnit struct {
	unit
	of          *Documents
	first, last int64
}

func (u documentUnit) Rows() int64 { return u.last - u.first }

func (u documentUnit) SetPositions(to *buffers.Column, batch, _ int) {
	to.Planes[0].Data[batch], to.Planes[1].Data[batch] = u.of.values.Size()+8*u.first, 0
	if to.Planes[0].Length != nil {
		to.Planes[0].Length[batch] = u.Rows()
	}
	to.Planes[1].Length[batch] = u.of.values.Size() / int64(u.of.typ.Size())
}

func (u documentUnit) Uneven(_ int, field *arrowtype.Field) (string, error) {
	size := int64(field.List(0).Length())
	for doc := u.first; doc < u.last; doc++ {
		if u.of.offset(doc+1)-u.of.offset(doc) != size {
			return format.UnevenLists(u.Rows(), u.of.offset(u.last)-u.of.offset(u.first), size), nil
		}
	}
	return "", nil
}
