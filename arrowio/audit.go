package arrowio

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// audit compares every buffer of every column, those that are no fields too,
// with what the metadata promise.
func (v *verifier) audit() error {
	var mu sync.Mutex
	progress := func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		v.progress(bytes)
	}
	return parallel(len(v.d.files), func(i int) error {
		f := v.d.files[i]
		a := auditor{ctx: v.ctx, file: f, codecs: &v.d.codecs, progress: progress, fields: v.d.columns, dictionaries: map[int64][]dictionaryLen{}}
		err := a.run()
		if changed := f.content.Check(); changed != nil {
			return changed // what was found may be due to that
		}
		return f.named(err)
	})
}

// auditor goes through one file.
type auditor struct {
	ctx          context.Context
	file         *file
	codecs       *codecs
	progress     func(bytes int64)
	fields       []int // columns whose rows are gathered anyway
	dictionaries map[int64][]dictionaryLen
}

func (a *auditor) run() error {
	meta, left := a.file.meta, a.file.meta.Size
	if err := meta.ScanDictionaries(a.file.reader(a.ctx), a.dictionary); err != nil {
		return err
	}
	err := a.file.batches(a.ctx, func(i int, b *arrowmeta.RecordBatch) error {
		bytes := meta.Batches[i].MetaLen + meta.Batches[i].BodyLen
		left -= bytes
		defer a.progress(bytes)
		return a.batch(i, b)
	})
	if err == nil {
		a.progress(left)
	}
	return err
}

// dictionaryLen is how many values a dictionary has from some record batch on.
type dictionaryLen struct {
	from   int
	values int64
}

// dictionary audits the values of a dictionary batch, and notes how many there
// are by then.
func (a *auditor) dictionary(i int, d *arrowmeta.DictionaryBatch) error {
	block, list := a.file.meta.Dictionaries[i], a.dictionaries[d.ID]
	next := dictionaryLen{values: d.Length}
	if a.file.meta.Stream {
		next.from, _ = slices.BinarySearchFunc(a.file.meta.Batches, block.Offset, func(b arrowmeta.Block, off int64) int { return cmp.Compare(b.Offset, off) })
	} else if len(list) > 0 && !d.Delta {
		return replacedInFile(i, d.ID)
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

// dictionaryLen gives how many values a dictionary has for a record batch.
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
	b := a.open(header, a.file.meta.Batches[i], func(id int64) int64 { return a.dictionaryLen(id, i) })
	for k := range a.file.meta.Columns {
		if err := a.column(b, &a.file.meta.Columns[k], !slices.Contains(a.fields, k)); err != nil {
			return damaged(fmt.Errorf("record batch %d: %w", i, err))
		}
	}
	return nil
}

func (a *auditor) column(b *audit.Batch, c *arrowmeta.Column, all bool) error {
	if !c.Located {
		return nil
	}
	return b.Column(a.ctx, c, all)
}

// damaged makes damage of a fault. The column is an attribute of it.
func damaged(err error) error {
	var fault *audit.Fault
	if !errors.As(err, &fault) {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "%w", err).
		WithHint("the data are damaged; write them again").With("field", fault.Column)
}

// open lets the buffers of a batch be read, decompressed.
func (a *auditor) open(header *arrowmeta.RecordBatch, block arrowmeta.Block, dictionaryLen func(id int64) int64) *audit.Batch {
	return &audit.Batch{Header: header, DictionaryLen: dictionaryLen, Open: func(b arrowmeta.Buffer) (audit.Buffer, error) {
		stored := io.NewSectionReader(a.file.reader(a.ctx), block.Body()+b.Offset, b.Length)
		if header.Compression == arrowmeta.Uncompressed || b.Length == 0 {
			return stored, nil
		}
		return a.unpack(header.Compression, stored)
	}}
}

// unpack decompresses a buffer, which begins with its size.
func (a *auditor) unpack(how arrowmeta.Compression, stored *io.SectionReader) (audit.Buffer, error) {
	var prefix [8]byte
	if _, err := stored.ReadAt(prefix[:], 0); err != nil {
		return nil, err
	}
	size, rest := int64(binary.LittleEndian.Uint64(prefix[:])), io.NewSectionReader(stored, 8, stored.Size()-8)
	if size == -1 {
		return rest, nil
	}
	if size < 0 || size > maxDecoded {
		return nil, &audit.Fault{Text: fmt.Sprintf("a buffer of %d bytes", size)}
	}
	packed := make([]byte, rest.Size())
	if _, err := rest.ReadAt(packed, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	out, err := a.codecs.decompress(how, packed, size)
	if err != nil {
		return nil, &audit.Fault{Text: err.Error()}
	}
	return bytes.NewReader(out), nil
}

// Unchecked is what Verify does not check of a column.
type Unchecked struct {
	Column string // with the names of its parents, joined by points
	Type   string
	What   string
}

// unchecked lists what is not checked of columns and their children.
func unchecked(columns []arrowmeta.Column, parents string) (list []Unchecked) {
	for i := range columns {
		c := &columns[i]
		path := parents + c.Field.Name
		if what := uncheckedOf(c); what != "" {
			list = append(list, Unchecked{path, c.Field.TypeString(), what})
		}
		if c.Located {
			list = append(list, unchecked(c.Children, path+".")...)
		}
	}
	return list
}

// uncheckedOf says what is not checked of a column itself.
func uncheckedOf(c *arrowmeta.Column) string {
	switch t := &c.Field.Type; {
	case !c.Located:
		return "anything: its type, or that of a column before it, is not known"
	case t.Kind == arrowmeta.Decimal:
		return fmt.Sprintf("whether values have at most %d digits", t.Precision)
	case t.Kind == arrowmeta.Time:
		return "whether times lie within a day"
	case t.Kind == arrowmeta.Date && t.BitWidth == 64:
		return "whether values are whole days"
	case t.Kind == arrowmeta.Map && t.KeysSorted:
		return "whether keys differ and are sorted"
	case t.Kind == arrowmeta.Map:
		return "whether keys differ"
	}
	return ""
}
