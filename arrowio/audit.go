package arrowio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// verify checks every buffer of every column against the format and the metadata,
// including columns that cannot be loaded. fields are the columns that can.
func (c *ipc) verify(ctx context.Context, fields []int, progress func(bytes int64)) error {
	a := auditor{ctx: ctx, file: c, fields: fields, dictionaries: map[int64][]dictionaryLen{}}
	if err := c.meta.ScanDictionaries(c.reader(ctx), a.dictionary); err != nil {
		return err
	}
	left := c.meta.Size
	err := c.meta.Scan(c.reader(ctx), 0, len(c.meta.Batches), func(i int, b *arrowmeta.RecordBatch) error {
		bytes := c.meta.Batches[i].MetaLen + c.meta.Batches[i].BodyLen
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
	ctx          context.Context
	file         *ipc
	fields       []int                     // columns whose rows Verify also gathers, which reads every value
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
	block, list := a.file.meta.Dictionaries[i], a.dictionaries[d.ID]
	next := dictionaryLen{from: a.file.firstUser(block), values: d.Length}
	if !a.file.meta.Stream && len(list) > 0 && !d.Delta {
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
	b := a.open(header, a.file.meta.Batches[i], func(id int64) int64 { return a.dictionaryLen(id, i) })
	for k := range a.file.meta.Columns {
		if err := a.column(b, &a.file.meta.Columns[k], !slices.Contains(a.fields, k)); err != nil {
			return damaged(fmt.Errorf("record batch %d: %w", i, err))
		}
	}
	return nil
}

// column audits a column. If all is false, it does not read values that are valid
// whatever their bits are, such as numbers.
func (a *auditor) column(b *audit.Batch, c *arrowmeta.Column, all bool) error {
	if !c.Located { // after an unknown type, no buffer can be assigned to a column
		return nil
	}
	return b.Column(a.ctx, c, all)
}

// damaged converts an [audit.Fault] to an error of code DataLoss with the column as
// an attribute. Other errors stay as they are.
func damaged(err error) error {
	var fault *audit.Fault
	if !errors.As(err, &fault) {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "%w", err).
		WithHint("the data are damaged; write them again").With("field", fault.Column)
}

// open returns a batch whose buffers are read from the file and decompressed.
func (a *auditor) open(header *arrowmeta.RecordBatch, block arrowmeta.Block, dictionaryLen func(id int64) int64) *audit.Batch {
	return &audit.Batch{Header: header, DictionaryLen: dictionaryLen, Open: func(b arrowmeta.Buffer) (audit.Buffer, error) {
		stored := io.NewSectionReader(a.file.reader(a.ctx), block.Body()+b.Offset, b.Length)
		if header.Compression == arrowmeta.Uncompressed || b.Length == 0 {
			return stored, nil
		}
		packed := make([]byte, b.Length)
		if _, err := stored.ReadAt(packed, 0); err != nil {
			return nil, err
		}
		out, err := pooled.unpack(header.Compression, packed, func(size int64) error {
			if size < 0 || size > maxDecoded {
				return fmt.Errorf("a buffer of %d bytes", size)
			}
			return nil
		})
		if err != nil {
			return nil, &audit.Fault{Text: err.Error()}
		}
		return bytes.NewReader(out), nil
	}}
}

// Unchecked is a property of a column that Verify does not check.
type Unchecked struct {
	Column string // with the names of its parents, joined by dots
	Type   string
	What   string
}

// unchecked lists what Verify does not check of columns and their children.
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

// uncheckedOf returns what Verify does not check of a column, not counting its
// children; "" if it checks everything.
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
