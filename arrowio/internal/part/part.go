// Package part reads and writes parts, and gives access to their bytes ([Files]). A part is a file
// that holds decoded columns of consecutive units of a dataset: their buffers, then a table of
// positions, then a text that says for people what they are, then a trailer. A part without columns
// may hold any bytes in place of the buffers, and its table is empty.
//
//	trailer: the bytes of the table, the bytes of the text, the SHA-256 of the key and
//	         the two, and "MFUNITS2"
//
// A part is damaged if its table does not match its trailer, its key or its size. The
// values have no checksum, as in an Arrow file.
package part

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Level holds the positions of the buffers of a level. The position of a buffer that does
// not exist is -1.
type Level struct {
	Length      int64
	Valid, Data buffers.Extent
	Buffers     []buffers.Extent // data buffers of views
}

// Column holds the positions of a column of a unit, by level.
type Column []Level

const (
	magic   = "MFUNITS2"
	trailer = 16 + sha256.Size + len(magic)
	align   = 64
)

// Writer writes a part.
type Writer struct {
	w     io.Writer
	at    int64
	table []byte // describes the columns so far
	count int
}

// NewWriter returns a writer of a part.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Column appends a column of a unit. The columns of the first unit come first.
func (w *Writer) Column(d *buffers.Decoded) error {
	w.count++
	w.table = binary.AppendVarint(w.table, int64(len(d.Levels)))
	for i := range d.Levels {
		l := &d.Levels[i]
		w.table = binary.AppendVarint(w.table, l.Length)
		for _, b := range [][]byte{l.Valid, l.Data} {
			if err := w.buffer(b); err != nil {
				return err
			}
		}
		w.table = binary.AppendVarint(w.table, int64(len(l.Buffers)))
		for _, b := range l.Buffers {
			if err := w.buffer(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write appends bytes that are no column. A part has either such bytes or columns.
func (w *Writer) Write(p []byte) (int, error) { return len(p), w.write(p) }

// buffer writes a buffer and its position.
func (w *Writer) buffer(b []byte) error {
	at := int64(-1)
	if b != nil {
		at = w.at
	}
	w.table = binary.AppendVarint(binary.AppendVarint(w.table, at), int64(len(b)))
	if err := w.write(b); err != nil {
		return err
	}
	return w.write(make([]byte, -w.at&(align-1)))
}

func (w *Writer) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	n, err := w.w.Write(p)
	w.at += int64(n)
	return err
}

// maxAbout bounds the text of a part.
const maxAbout = 64 << 10

// Finish writes the table, the text and the trailer.
func (w *Writer) Finish(key, about string) error {
	about = about[:min(len(about), maxAbout)]
	end := binary.LittleEndian.AppendUint64(nil, uint64(len(w.table)))
	end = binary.LittleEndian.AppendUint64(end, uint64(len(about)))
	body := append(w.table, about...)
	end = append(append(end, sum(key, body)...), magic...)
	return errors.Join(w.write(body), w.write(end))
}

// sum hashes a key, and a table with its text.
func sum(key string, body []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", key)
	h.Write(body)
	return h.Sum(nil)
}

// tail is the end of a part: its table and its text, and what its trailer says.
type tail struct {
	body  []byte
	table int // bytes of the table in body
	sum   []byte
}

// readTail reads the end of a part of size bytes.
func readTail(r io.ReaderAt, size int64) (t tail, err error) {
	end, left := make([]byte, trailer), size-int64(trailer)
	if left < 0 {
		return t, ErrDamaged
	}
	if _, err := r.ReadAt(end, left); err != nil {
		return t, err
	}
	table, about := binary.LittleEndian.Uint64(end), binary.LittleEndian.Uint64(end[8:])
	if string(end[trailer-len(magic):]) != magic || about > maxAbout || table > uint64(left) || table+about > uint64(left) {
		return t, ErrDamaged
	}
	t = tail{make([]byte, table+about), int(table), end[16 : 16+sha256.Size]}
	_, err = r.ReadAt(t.body, left-int64(len(t.body)))
	return t, err
}

// About returns the text of a part of size bytes, which the key must fit.
func About(r io.ReaderAt, size int64, key string) (string, error) {
	t, err := readTail(r, size)
	if err == nil && !bytes.Equal(sum(key, t.body), t.sum) {
		err = ErrDamaged
	}
	if err != nil {
		return "", err
	}
	return string(t.body[t.table:]), nil
}

// Bytes returns how many bytes Write has appended to a part of size bytes, which the key must fit.
func Bytes(r io.ReaderAt, size int64, key string) (int64, error) {
	t, err := readTail(r, size)
	if err == nil && (!bytes.Equal(sum(key, t.body), t.sum) || t.table > 0) {
		err = ErrDamaged
	}
	return size - int64(trailer) - int64(len(t.body)), err
}

// ErrDamaged is the error of a part that cannot be used.
var ErrDamaged = errors.New("the part is damaged")

// Read reads the positions of a part of size bytes, which has a column of each field for each unit.
// Rows has the number of rows of each unit. The error is [ErrDamaged], or the error of a read.
func Read(r io.ReaderAt, size int64, key string, fields []*arrowtype.Field, rows []int64) ([][]Column, error) {
	t, err := readTail(r, size)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(sum(key, t.body), t.sum) {
		return nil, ErrDamaged
	}
	d := decoder{left: t.body[:t.table], size: size - int64(trailer) - int64(len(t.body))}
	units := make([][]Column, len(rows))
	for i, n := range rows {
		for _, f := range fields {
			column, ok := d.column(f, n)
			if !ok {
				return nil, ErrDamaged
			}
			units[i] = append(units[i], column)
		}
	}
	if len(d.left) > 0 {
		return nil, ErrDamaged
	}
	return units, nil
}

// decoder decodes a table of positions.
type decoder struct {
	left []byte
	size int64 // all buffers together
	bad  bool
}

func (d *decoder) number() int64 {
	n, used := binary.Varint(d.left)
	if used <= 0 {
		d.bad = true
		return 0
	}
	d.left = d.left[used:]
	return n
}

func (d *decoder) extent() buffers.Extent {
	e := buffers.Extent{At: d.number(), Bytes: d.number()}
	if e.Bytes < 0 || e.At < -1 || e.At > d.size-e.Bytes || e.At < 0 && e.Bytes > 0 {
		d.bad = true
	}
	return e
}

// column decodes a column of a unit, and checks that its buffers are large enough.
func (d *decoder) column(f *arrowtype.Field, rows int64) (Column, bool) {
	if d.number() != int64(len(f.Levels)) {
		return nil, false
	}
	c := make(Column, len(f.Levels))
	need := rows
	for n := range c {
		l := &c[n]
		l.Length, l.Valid, l.Data = d.number(), d.extent(), d.extent()
		buffers := d.number()
		if d.bad || buffers < 0 || buffers > int64(len(d.left)) || l.Length < need || !l.fits(f.Levels[n].Buffer()) {
			return nil, false
		}
		for range buffers {
			l.Buffers = append(l.Buffers, d.extent())
		}
		need = 0
		if list, ok := f.Levels[n].(arrowtype.List); ok && list.Direct() {
			if l.Length > 0 && int64(list.Length()) > maxLength/l.Length {
				return nil, false
			}
			need = l.Length * int64(list.Length())
		}
	}
	return c, !d.bad
}

// maxLength bounds the elements of a level, so that no product below overflows.
const maxLength = 1 << 46

// fits reports whether the buffers hold as many elements as the level has.
func (l *Level) fits(b arrowtype.Buffer) bool {
	if l.Length > maxLength || l.Valid.At >= 0 && l.Valid.Bytes < (l.Length+7)/8 {
		return false
	}
	if b.Bits == 0 || l.Length == 0 {
		return true
	}
	_, bytes := b.Bytes(0, l.Length)
	return l.Data.At >= 0 && l.Data.Bytes >= bytes
}
