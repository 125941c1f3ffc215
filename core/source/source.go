// Package source defines what a dataset is to meshfeed: fields with rows, which are
// addressed by record number. The rows of a fixed field all have one shape. The rows of
// a ragged field are lists, text or bytes of different lengths.
//
// A [Source] knows the shape and type of every field from metadata alone. It
// returns a [Gatherer] for parts of the rows of fixed fields, and the gatherer copies
// these parts of chosen records into the caller's memory, one call per step. It also
// returns a [Reader], which reads whole rows of any fields; views are built on it.
// The source alone decides where the bytes are: in a mapping, a file or a decoder.
//
// # Rows that depend on the draw
//
// A random view makes other rows in every epoch, such as random crops. So each call that needs rows
// has a [Draw]: the seed and the epoch of the loader. A view passes the draw on to the sources below,
// and every other source ignores it. A batch lies in one epoch, so a call has one draw. A view that
// divides its rows among several epochs of a source, such as a mixture, makes a call for each
// epoch. The schema, the length, the facts and the fingerprint do not depend on the draw.
//
// Outside of a loader, rows are read with the zero Draw. This holds for single rows, arrays, the
// conditions of filters, the groups of windows and splits, lengths, checks, conversions and
// verification. They see the rows that a loader with seed 0 delivers in epoch 0.
//
// # Implementations
//
// Package cut makes a Gatherer of a Reader, and a Reader of a Gatherer, so that a
// source implements only one of them. Package sourcetest holds the tests that every
// implementation must pass.
package source

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// Source is a dataset: Len records, each with one row per field. All methods
// are safe for concurrent use.
type Source interface {
	// Schema lists the fields. The caller must not change it.
	Schema() Schema

	// Len returns the number of records.
	Len() int64

	// Fingerprint identifies the content by a hash that is the same on every
	// host. It is computed once; later calls return it at once.
	Fingerprint(ctx context.Context) (Fingerprint, error)

	// Gatherer resolves parts of rows for one pass over the records. It fails
	// if a part does not fit the schema, if its field is ragged, or if the field
	// cannot be delivered as Part.To. If a row has a null and the part has no Fill, its
	// gather fails with InvalidArgument. If a narrower integer cannot hold a number, it
	// fails with OutOfRange.
	Gatherer(parts []Part) (Gatherer, error)

	// Reader returns a reader of whole rows of some fields, fixed or ragged. The
	// error is InvalidArgument for a number that is not a field's.
	Reader(fields []int) (Reader, error)

	// Facts returns what the source knows beside its rows; the zero Facts if it knows nothing
	// more. A type that embeds a Source and changes its records or fields must change the facts too.
	Facts() Facts

	// Close cancels the gathers under way and waits for them, at most one
	// second if they read files. The last gather to end releases the source's
	// memory and files. Every later call fails with InvalidState.
	Close() error
}

// Schema lists the fields of a source.
type Schema struct {
	Fields  []Field
	Skipped []Skipped // columns that cannot be arrays, with the reason
}

// Field returns the named field and its number.
func (s Schema) Field(name string) (number int, field Field, ok bool) {
	for i, f := range s.Fields {
		if f.Name == name {
			return i, f, true
		}
	}
	return 0, Field{}, false
}

// Find returns the number of a field. The error is Unsupported, with the reason, for a column
// that is skipped. Otherwise it is NotFound, and lists the fields.
func (s Schema) Find(name string) (int, error) {
	if n, _, ok := s.Field(name); ok {
		return n, nil
	}
	for _, c := range s.Skipped {
		if c.Name == name {
			return 0, status.Errorf(status.Unsupported, "source", "column %q of type %s cannot be an array: %s", c.Name, c.Type, c.Reason).With("field", name)
		}
	}
	names := make([]string, 0, listed+1)
	for _, f := range s.Fields[:min(listed, len(s.Fields))] {
		names = append(names, strconv.Quote(f.Name))
	}
	if more := len(s.Fields) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return 0, status.Errorf(status.NotFound, "source", "the dataset has no field %q", name).
		WithHint("the fields are %s", strings.Join(names, ", ")).With("field", name)
}

// listed is how many fields an error names.
const listed = 20

// Fixed returns the numbers of the fields that are not ragged.
func (s Schema) Fixed() []int {
	list := make([]int, 0, len(s.Fields))
	for i, f := range s.Fields {
		if f.Ragged == 0 {
			list = append(list, i)
		}
	}
	return list
}

// CheckFields returns an error if a number in a list is not a field's.
func (s Schema) CheckFields(fields []int) error {
	for _, i := range fields {
		if i < 0 || i >= len(s.Fields) {
			return status.Errorf(status.InvalidArgument, "source", "there is no field %d among %d", i, len(s.Fields))
		}
	}
	return nil
}

// Field is one column of rows.
type Field struct {
	Name     string
	Type     dtype.Type
	Shape    []int // shape of one row; empty for a scalar
	Nullable bool  // some record has a null here, or metadata cannot exclude it
	HasNulls bool  // metadata show that a record is null here, so the field is Nullable

	// Ragged is the number of leading dimensions that vary in size from row to row:
	// 0 for a fixed field, 1 for lists, text and bytes, 2 for lists of lists or of
	// text. Shape is then the shape of one element of the innermost lists: it is
	// empty for lists of numbers, for text and for bytes.
	Ragged int

	// Lists says that the rows of a fixed field are stored as lists, which have one length as
	// far as metadata and the first records tell. A [Reader] returns rows of other lengths
	// too, and a view such as padding may use them; see CheckRow.
	Lists bool

	// Logical is the type that the values of Type stand for, as Arrow prints it:
	// "timestamp[us, tz=UTC]", or "string" and "binary" for bytes. It is empty for
	// plain numbers.
	Logical string

	// Computed reports that a view made the field, or the names of directories: no file has it.
	Computed bool

	// Mapped reports that a function of the program computes the rows, so that each read of rows or of
	// lengths calls it.
	Mapped bool

	// Names are the names of the classes that integers stand for: value i is Names[i].
	// It is nil if the data do not name them. Values are not checked against it.
	Names []string
}

// RowBytes returns the size in bytes of one row, or of one element of the innermost
// lists of a ragged field.
func (f Field) RowBytes() int {
	n := f.Type.Size()
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// Skipped is a column that is not a field, with the reason.
type Skipped struct {
	Name, Type, Reason string
}

// Part is one block of a field's row.
type Part struct {
	Field int        // number in Schema().Fields
	To    dtype.Type // type of the delivered elements: the field's own type (Invalid stands for it), or its Narrow type

	// Boxes holds, for each box, the full [start, stop) ranges of every
	// dimension of the row. Several boxes differ in dimension 0 only and are
	// concatenated along it in this order. A scalar has one empty box.
	Boxes [][][2]int

	// Fill replaces a null row, or a null element of a row: a bool, or a number of any Go
	// type that To can hold. Without it, a null is an error of the gather.
	Fill any
}

// Bytes returns the size of the block in bytes if its elements are of typ.
func (p Part) Bytes(typ dtype.Type) int {
	total := 0
	for _, box := range p.Boxes {
		n := typ.Size()
		for _, r := range box {
			n *= r[1] - r[0]
		}
		total += n
	}
	return total
}

// Whole returns the part that consists of whole rows of a fixed field, with zeros in
// place of nulls.
func (s Schema) Whole(field int) Part {
	f := s.Fields[field]
	box := make([][2]int, len(f.Shape))
	for d, n := range f.Shape {
		box[d] = [2]int{0, n}
	}
	p := Part{Field: field, Boxes: [][][2]int{box}}
	if f.Nullable {
		p.Fill = int64(0)
		if f.Type == dtype.Bool {
			p.Fill = false
		}
	}
	return p
}

// Job asks a gather for the part of records[Rows[0]:Rows[1]], row after row in C
// order. The length of Dst is the number of rows times Part.Bytes. If the rows
// of a block are scattered in the list of records, the block takes several jobs.
type Job struct {
	Part int // number in the gatherer's parts
	Rows [2]int
	Dst  []byte
}

// Between returns the job for some of its rows, [from, to), of which there is at least one.
func (j Job) Between(from, to int) Job {
	width := len(j.Dst) / (j.Rows[1] - j.Rows[0])
	j.Dst = j.Dst[(from-j.Rows[0])*width : (to-j.Rows[0])*width]
	j.Rows = [2]int{from, to}
	return j
}

// Gatherer copies parts of records. It is safe for concurrent use, and does not
// use a Dst after Gather has returned.
type Gatherer interface {
	// Gather does all jobs of one step in a draw, so that a row is read once for all its
	// parts. Record -1 is padding: a row of zeros. Any other record outside
	// [0, Len) is OutOfRange. Dst need not be zeroed or aligned.
	Gather(ctx context.Context, draw Draw, records []int64, jobs []Job) error

	// Ahead announces records that later gathers with this draw will need, in their order,
	// for readahead. It returns at once, keeps no reference to the list, and ignores
	// records that do not exist.
	Ahead(draw Draw, records []int64)

	// Close ends readahead and drops caches. No gather may run.
	Close() error
}

// Fingerprint is a hash of a dataset's content. It is equal on every host that
// sees the same records under the same schema. It may cover only a part of the
// data: see [Facts].
type Fingerprint [16]byte

// String returns 32 hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// ParseFingerprint parses 32 hexadecimal digits.
func ParseFingerprint(s string) (Fingerprint, error) {
	var f Fingerprint
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(f) {
		return f, status.Errorf(status.InvalidArgument, "source", "%q is not a fingerprint (32 hexadecimal digits)", s)
	}
	copy(f[:], b)
	return f, nil
}
