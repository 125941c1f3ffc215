package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// File is a file of Arrow IPC.
type File struct {
	Meta   *arrowmeta.File
	Reader io.ReaderAt // reads the whole file

	// Gathered are the columns that the caller reads, too. The audit leaves out their values
	// that are valid whatever their bits are, such as numbers.
	Gathered []int

	// Unpack returns the content of a compressed buffer.
	Unpack func(how arrowmeta.Compression, packed []byte) ([]byte, error)
}

// Audit checks every buffer of every column against the format and the metadata, including
// columns that cannot be loaded. The bytes of all calls of progress add up to the size of the
// file.
func (f *File) Audit(ctx context.Context, progress func(bytes int64)) error {
	a := auditor{File: f, ctx: ctx, dictionaries: map[int64][]dictionaryLen{}}
	if err := f.Meta.ScanDictionaries(f.Reader, a.dictionary); err != nil {
		return err
	}
	left := f.Meta.Size
	err := f.Meta.Scan(f.Reader, 0, len(f.Meta.Batches), func(i int, b *arrowmeta.RecordBatch) error {
		bytes := f.Meta.Batches[i].MetaLen + f.Meta.Batches[i].BodyLen
		left -= bytes
		defer progress(bytes)
		return a.batch(i, b)
	})
	if err == nil {
		progress(left) // the rest of the file: schema, dictionaries and footer
	}
	return err
}

// auditor audits one file.
type auditor struct {
	*File
	ctx          context.Context
	dictionaries map[int64][]dictionaryLen // by id
}

// dictionaryLen is the number of values of a dictionary for some record batches: a
// stream may extend or replace a dictionary between record batches.
type dictionaryLen struct {
	from   int // the first record batch with this number of values
	values int64
}

// dictionary audits the values of a dictionary batch, and records how many values
// the dictionary has after it.
func (a *auditor) dictionary(i int, d *arrowmeta.DictionaryBatch) error {
	block, list := a.Meta.Dictionaries[i], a.dictionaries[d.ID]
	next := dictionaryLen{from: a.Meta.FirstUser(block), values: d.Length}
	if !a.Meta.Stream && len(list) > 0 && !d.Delta {
		return ReplacedDictionary(i, d.ID)
	}
	if len(list) > 0 && d.Delta {
		next.values += list[len(list)-1].values
	}
	b := a.open(&d.RecordBatch, block, func(id int64) int64 { return a.dictionaryLen(id, next.from) })
	if err := a.column(b, d.Values, true); err != nil {
		return damaged(fmt.Errorf("dictionary batch %d: %w", i, err))
	}
	a.dictionaries[d.ID] = append(list, next)
	return nil
}

// dictionaryLen returns the number of values of a dictionary for a record batch.
func (a *auditor) dictionaryLen(id int64, batch int) (values int64) {
	for _, d := range a.dictionaries[id] {
		if d.from > batch {
			break
		}
		values = d.values
	}
	return values
}

// batch audits all columns of a record batch.
func (a *auditor) batch(i int, header *arrowmeta.RecordBatch) error {
	b := a.open(header, a.Meta.Batches[i], func(id int64) int64 { return a.dictionaryLen(id, i) })
	for k := range a.Meta.Columns {
		if err := a.column(b, &a.Meta.Columns[k], !slices.Contains(a.Gathered, k)); err != nil {
			return damaged(fmt.Errorf("record batch %d: %w", i, err))
		}
	}
	return nil
}

// column audits a column. If all is false, it does not read values that are valid
// whatever their bits are, such as numbers.
func (a *auditor) column(b *batch, c *arrowmeta.Column, all bool) error {
	if !c.Located { // after an unknown type, no buffer can be assigned to a column
		return nil
	}
	return (&column{ctx: a.ctx, batch: b, Column: c, path: c.Field.Name, all: all}).audit()
}

// damaged converts an [Fault] to an error of code DataLoss with the column as
// an attribute. Other errors stay as they are.
func damaged(err error) error {
	fault, ok := errors.AsType[*Fault](err)
	if !ok {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "%w", err).
		WithHint("the data are damaged; write them again").With("field", fault.Column)
}

// open returns a batch that reads its buffers from the file and decompresses them.
func (a *auditor) open(header *arrowmeta.RecordBatch, block arrowmeta.Block, dictionaryLen func(id int64) int64) *batch {
	return &batch{RecordBatch: header, dictionaryLen: dictionaryLen, open: func(b arrowmeta.Buffer) (buffer, error) {
		stored := io.NewSectionReader(a.Reader, block.Body()+b.Offset, b.Length)
		if header.Compression == arrowmeta.Uncompressed || b.Length == 0 {
			return stored, nil
		}
		packed := make([]byte, b.Length)
		if _, err := stored.ReadAt(packed, 0); err != nil {
			return nil, err
		}
		out, err := a.Unpack(header.Compression, packed)
		if err != nil {
			return nil, &Fault{Text: err.Error()}
		}
		return bytes.NewReader(out), nil
	}}
}

// ReplacedDictionary returns the error for a dictionary batch that replaces another one.
func ReplacedDictionary(batch int, id int64) error {
	return status.Errorf(status.DataLoss, "arrowio", "dictionary batch %d replaces dictionary %d, which only streams may do", batch, id).
		WithHint("write one dictionary for all record batches, with pyarrow: table.unify_dictionaries()")
}
