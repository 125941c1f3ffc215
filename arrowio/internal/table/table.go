package table

import (
	"context"
	"errors"
	"sort"
	"sync"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Column holds the positions of a field's buffers: one Plane per level.
type Column struct {
	Planes       []Plane
	Dictionaries []*arrowtype.Dictionary // of a dictionary column, in the order of From
	Memory       []unsafe.Pointer        // keeps Go memory alive, if positions are addresses in it
	Variants     []*Variant              // by record batch: how its file stores the field; nil if as Table.Fields says
}

// Variant is another way in which some files store a field, such as text with longer offsets.
type Variant struct {
	Field  *arrowtype.Field
	Column *Column // nil if all rows are null
}

// Stored returns how the file of a record batch stores a field: as the field and the column
// say, or in another way. The result has no column if all rows are null.
func (c *Column) Stored(f *arrowtype.Field, batch int32) (*arrowtype.Field, *Column) {
	if c.Variants == nil || c.Variants[batch] == nil {
		return f, c
	}
	return c.Variants[batch].Field, c.Variants[batch].Column
}

// Plane holds the positions of one level's buffers, with an entry per record
// batch. A position is an offset in the batch's file, or an address if the
// table lies in memory.
type Plane struct {
	Valid  []int64 // validity bitmap, -1 for a batch without nulls here; nil if no batch has any
	Data   []int64 // offsets, indices or values; nil for a level without data buffer
	Length []int64 // elements of the level; nil if the metadata guarantee that there are enough
	Shift  []int64 // elements to skip at the front of the buffers; nil for none

	Buffers [][]Extent // data buffers of views; nil for a level without views
}

// Extent is the position of a data buffer of views, and its size in bytes.
type Extent struct{ At, Bytes int64 }

// shift returns the elements to skip in a record batch.
func (p *Plane) shift(batch int32) int64 {
	if p.Shift == nil {
		return 0
	}
	return p.Shift[batch]
}

// valid returns the position of a batch's validity bitmap, -1 for none.
func (p *Plane) valid(batch int32) int64 {
	if p.Valid == nil {
		return -1
	}
	return p.Valid[batch]
}

// dictionary returns the dictionary that a record batch uses: the last that
// begins at or before it.
func (c *Column) dictionary(batch int32) *arrowtype.Dictionary {
	i := sort.Search(len(c.Dictionaries), func(i int) bool { return c.Dictionaries[i].From > batch })
	if i == 0 {
		return &arrowtype.Dictionary{}
	}
	return c.Dictionaries[i-1]
}

// nulls returns whether some record batch has nulls.
func (c *Column) nulls() (n Nulls) {
	for i := range c.Planes {
		n.May = n.May || c.Planes[i].Valid != nil
	}
	return Nulls{n.May, c.Planes[0].Valid != nil}
}

// Store provides access to the files that hold the record batches. A nil Store
// stands for memory: positions are addresses.
type Store interface {
	// Base returns the address at which a file begins in memory. ok is false
	// until all of the file is resident.
	Base(file int32) (address uintptr, ok bool)

	// Acquire writes the address of every span to the list. They stay valid
	// until the lease is released.
	Acquire(ctx context.Context, spans []resident.Span, to []uintptr) (Lease, error)

	// Ahead announces the spans that later calls of Acquire will ask for.
	Ahead(spans []resident.Span)

	// Encoded reports whether the buffers of a file have to be decoded.
	Encoded(file int32) bool

	// Decode calls use with the buffers of one field in each record batch of a list, in
	// its order. The files of these batches are encoded. The buffers do not change, and
	// stay in memory as long as something refers to them. If lists is true, the buffers of values may be missing.
	Decode(ctx context.Context, batches []int32, field int, lists bool, use func(i int, decoded *Decoded) error) error

	// DecodeAhead announces calls of Decode for the values of all these fields in all
	// these record batches. It returns at once.
	DecodeAhead(batches []int32, fields []int)

	// Check fails if a file of a list has changed since it was opened.
	Check(files []int32) error

	// Named adds the name of the record batch's file to an error.
	Named(batch int32, err error) error
}

// Decoded holds the buffers of a field in one record batch, by level. Text has two levels:
// its offsets and validity, then its bytes, whose Length is their number.
type Decoded struct {
	Levels []DecodedLevel
	Bytes  int64

	Reading, Unpacking time.Duration // how long the storage and the decompression took
}

// DecodedLevel holds the buffers of a level.
type DecodedLevel struct {
	Valid  []byte // nil if there are no nulls
	Data   []byte // nil for a level without data buffer
	Length int64

	Buffers [][]byte // data buffers of views; nil if values were left out
}

// Lease keeps addresses valid.
type Lease interface{ Release() }

// Table holds the fields of a dataset, and the positions of their values in the
// record batches.
type Table struct {
	Fields  []*arrowtype.Field
	Strides [][]int // by field, in bytes: from record to record, then within a row; nil for C order
	Schema  source.Schema
	Index   *Index
	Files   []int32 // file of each record batch; nil if there is at most one
	Store   Store

	// Held bounds the bytes of decoded record batches whose rows one call uses in place.
	Held int64

	// Load finds the buffers of fields. It is called once for each field.
	Load func(fields []int) ([]*Column, error)

	// Arm, if set, is called before bytes of the store are read, so that Check
	// fails afterwards if some were missing.
	Arm func()

	// Calls counts the gathers in progress, so that Close can wait for them.
	Calls *source.Calls

	mu      sync.Mutex
	columns map[int]*Column
}

// load returns the columns of fields. It calls Load once for all of them that were
// not loaded before.
func (t *Table) load(fields []int) ([]*Column, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == nil {
		t.columns = map[int]*Column{}
	}
	var missing []int
	for _, field := range fields {
		if t.columns[field] == nil {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		found, err := t.Load(missing)
		if err != nil {
			return nil, err
		}
		for i, field := range missing {
			t.columns[field] = found[i]
		}
	}
	columns := make([]*Column, len(fields))
	for i, field := range fields {
		columns[i] = t.columns[field]
	}
	return columns, nil
}

// Column returns the column of a field.
func (t *Table) Column(field int) (*Column, error) {
	columns, err := t.load([]int{field})
	if err != nil {
		return nil, err
	}
	return columns[0], nil
}

// Loaded returns a function for Table.Load that selects from the columns of all
// fields.
func Loaded(columns []*Column) func(fields []int) ([]*Column, error) {
	return func(fields []int) ([]*Column, error) {
		list := make([]*Column, len(fields))
		for i, field := range fields {
			list[i] = columns[field]
		}
		return list, nil
	}
}

// Nulls says what metadata tell about the nulls of a column.
type Nulls struct {
	May bool // metadata do not exclude nulls of rows, or within rows
	Has bool // some row is null
}

// Or returns what is known of two parts of a column together.
func (n Nulls) Or(m Nulls) Nulls { return Nulls{n.May || m.May, n.Has || m.Has} }

// Add appends a field.
func (t *Table) Add(f *arrowtype.Field, nulls Nulls) {
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

// File returns the number of the file that holds a record batch.
func (t *Table) File(batch int32) int32 {
	if t.Files == nil {
		return 0
	}
	return t.Files[batch]
}

// encoded reports whether the buffers of a record batch have to be decoded.
func (t *Table) encoded(batch int32) bool {
	return t.Store != nil && t.Store.Encoded(t.File(batch))
}

// damaged returns the error for a record whose bytes are invalid.
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

// inFile adds the name of the record's file to an error with the attribute "record".
func (t *Table) inFile(err error) error {
	var e *status.Error
	if !errors.As(err, &e) {
		return err
	}
	if record, ok := e.Attr("record").(int64); ok {
		batch, _ := t.Index.Locate(record)
		return t.named(batch, e)
	}
	return err
}

// bytesAt returns the n bytes at an address outside Go's stacks. A direct
// conversion would fail go vet. The conversion is safe: the memory belongs to a
// mapping or to C, or the gather keeps it alive.
func bytesAt(address uintptr, n int64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}
