package table

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Store provides access to the files that hold the record batches. A nil Store
// stands for memory: positions are addresses.
type Store interface {
	// Columns finds the buffers of fields. It is called once for each field.
	Columns(fields []int) ([]*buffers.Column, error)

	// Base returns the address of a file in memory. ok is false until all of
	// the file is resident.
	Base(file int32) (address uintptr, ok bool)

	// Acquire writes the address of every span to the list. They stay valid
	// until the lease is released.
	Acquire(ctx context.Context, spans []resident.Span, to []uintptr) (*resident.Lease, error)

	// Ahead announces the spans that later calls of Acquire will ask for.
	Ahead(spans []resident.Span)

	// Arm is called before bytes are read, so that Check fails afterwards if some were
	// missing.
	Arm()

	// Check fails if a file of a list has changed since it was opened.
	Check(files []int32) error

	// Named adds the name of the record batch's file to an error.
	Named(batch int32, err error) error
}

// Units decodes record batches that cannot be gathered as they are stored. Nil Units
// stand for files without such record batches.
type Units interface {
	// Encoded reports whether the buffers of a file have to be decoded.
	Encoded(file int32) bool

	// Decode calls use with the buffers of one field in each record batch of a list, in
	// its order. The files of these batches are encoded. The buffers do not change, and
	// stay in memory as long as something refers to them. If lists is true, the buffers of
	// values may be missing.
	Decode(ctx context.Context, batches []int32, field int, lists bool, use func(i int, decoded *buffers.Decoded) error) error

	// DecodeAhead announces calls of Decode for the values of all these fields in all
	// these record batches. It returns at once.
	DecodeAhead(batches []int32, fields []int)
}

// Table holds the fields of a dataset, and the positions of their values in the
// record batches.
type Table struct {
	Fields  []*arrowtype.Field
	Strides [][]int // by field, in bytes: from record to record, then within a row; nil for C order
	Schema  source.Schema
	Index   *index.Index
	Files   []int32 // file of each record batch; nil if there is at most one
	Store   Store
	Units   Units

	// Fetch, if set, begins to read the stored bytes of fields of encoded record batches, in
	// ascending order. A call that decodes several fields of them asks for all at first.
	Fetch func(batches []int32, fields []int)

	// Held bounds the bytes of the decoded record batches that one call uses in place.
	Held int64

	// Columns holds the buffers of the fields of a table in memory. Its Store is nil.
	Columns []*buffers.Column

	// Calls counts the gathers in progress, so that Close can wait for them.
	Calls *source.Calls

	mu      sync.Mutex
	columns map[int]*buffers.Column // from the store
}

// load returns the columns of fields. It asks the store once for all of them that were
// not loaded before.
func (t *Table) load(fields []int) ([]*buffers.Column, error) {
	columns := make([]*buffers.Column, len(fields))
	if t.Store == nil {
		for i, field := range fields {
			columns[i] = t.Columns[field]
		}
		return columns, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == nil {
		t.columns = map[int]*buffers.Column{}
	}
	var missing []int
	for _, field := range fields {
		if t.columns[field] == nil {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		found, err := t.Store.Columns(missing)
		if err != nil {
			return nil, err
		}
		for i, field := range missing {
			t.columns[field] = found[i]
		}
	}
	for i, field := range fields {
		columns[i] = t.columns[field]
	}
	return columns, nil
}

// Column returns the column of a field.
func (t *Table) Column(field int) (*buffers.Column, error) {
	columns, err := t.load([]int{field})
	if err != nil {
		return nil, err
	}
	return columns[0], nil
}

// Add appends a field.
func (t *Table) Add(f *arrowtype.Field, nulls buffers.Nulls) {
	t.Fields = append(t.Fields, f)
	rows := source.Field{
		Name: f.Name, Type: f.Type, Shape: f.Shape, Nullable: nulls.May, HasNulls: nulls.Has,
		Ragged: f.Ragged, Lists: f.Lists() > f.Ragged, Logical: f.Logical, Names: f.Names,
	}
	if e := f.Bytes; e != nil {
		rows.Type, rows.Shape, rows.Ragged, rows.Logical = e.Type, e.Shape, 0, ""
	}
	t.Schema.Fields = append(t.Schema.Fields, rows)
}

// file returns the number of the file that holds a record batch.
func (t *Table) file(batch int32) int32 {
	if t.Files == nil {
		return 0
	}
	return t.Files[batch]
}

// countFiles returns the number of files up to the last one with a record batch.
func (t *Table) countFiles() int32 { return t.file(int32(len(t.Files)-1)) + 1 }

// countEncoded returns the number of files with buffers that have to be decoded.
func (t *Table) countEncoded() (n int32) {
	for file := range t.countFiles() {
		if t.Units != nil && t.Units.Encoded(file) {
			n++
		}
	}
	return n
}

// encoded reports whether the buffers of a record batch have to be decoded.
func (t *Table) encoded(batch int32) bool {
	return t.Units != nil && t.Units.Encoded(t.file(batch))
}

// damaged returns the error for a record with invalid bytes.
func (t *Table) damaged(field int, batch int32, record int64, err error) error {
	name := t.Schema.Fields[field].Name
	return t.named(batch, status.Errorf(status.DataLoss, "arrowio", "field %q: record %d: %w", name, record, err).
		WithHint("the data are damaged; write them again").With("field", name).With("record", record))
}

// named adds the name of the record batch's file to an error.
func (t *Table) named(batch int32, err error) error {
	if t.Store == nil {
		return err
	}
	return t.Store.Named(batch, err)
}

// inFile adds the name of the record's file to an error with the attribute "record", and the row in the
// file, unless the message has that number.
func (t *Table) inFile(err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok || e.Attr("path") != nil {
		return err
	}
	record, ok := e.Attr("record").(int64)
	if !ok || record < 0 || record >= t.Index.Len() {
		return err
	}
	batch, row := t.Index.Locate(record)
	for b := batch - 1; b >= 0 && t.file(b) == t.file(batch); b-- {
		row += t.Index.Rows(int(b))
	}
	there := *e
	for _, a := range e.Attrs {
		if a.Key == "record" {
			record, _ = a.Value.(int64) // the message has the number in the view on top
		}
	}
	if row != record {
		there.Msg = fmt.Sprintf("row %d: %s", row, e.Msg)
	}
	return t.named(batch, &there)
}

// bytesAt returns the n bytes at an address outside Go's stacks. A direct
// conversion would fail go vet. The conversion is safe: the memory belongs to a
// mapping or to C, or the gather keeps it alive.
func bytesAt(address uintptr, n int64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}
