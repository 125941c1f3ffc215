// Package format defines what a format of files does for a dataset: it recognizes and opens a
// file, and decodes columns of its units. Packages ipc and parquet below it are the formats.
//
// A unit is a part of the rows of a file: a record batch of IPC, a row group of Parquet, or a
// run of its pages. A column of a unit is decoded in one call. A format knows nothing of
// datasets, caches and their bounds: it describes a decoding and the memory that it takes, and
// the caller decides when it runs.
package format

import (
	"context"
	"errors"
	"fmt"

	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Format is a kind of file. The comment of package arrowio explains how to add one.
type Format interface {
	// Recognize reports whether a file of size bytes has this format, by its first
	// and last bytes. Both have EdgeBytes bytes, or fewer if the file is shorter. Head
	// is nil in a first round, because most files are known by their end. A
	// format that needs the head does not recognize the file then.
	Recognize(head, last []byte, size int64) bool

	// Open reads the metadata of a file, and none of its values.
	Open(ctx context.Context, content *resident.File) (Contents, error)
}

// EdgeBytes is the number of bytes at the beginning and at the end of a file that Recognize
// receives.
const EdgeBytes = 16

// Contents is a file of some format: columns with rows that are divided into units. Contents are
// safe for concurrent use. Their errors need not name the file.
type Contents interface {
	// Metadata returns what Open has read.
	Metadata() *Metadata

	// Scan reads the headers of the units first to last-1 and visits them in
	// order. A visit must not keep the unit.
	Scan(ctx context.Context, first, last int, visit func(i int, u Unit) error) error

	// Decoding returns the decoding of a column of a unit. It may read metadata, but no
	// values.
	Decoding(ctx context.Context, unit, column int, field *arrowtype.Field) (Decoding, error)

	// Size returns about how many bytes a column of a unit has decoded, or -1 if only a decoding
	// tells.
	Size(ctx context.Context, unit, column int, field *arrowtype.Field) (int64, error)

	// Stored returns where the bytes are that the decoding of a column of a unit reads. They
	// are fetched together with others before the decoding. Bytes that are left
	// out are read by the decoding.
	Stored(unit, column int) []resident.Extent

	// Dictionaries reads the dictionaries of columns, as fields describe them.
	// Dictionary.From is the first unit of this file that uses a dictionary.
	// The list of a column that is decoded without a dictionary is empty.
	Dictionaries(ctx context.Context, columns []int, fields []*arrowtype.Field) ([][]*arrowtype.Dictionary, error)

	// Verify reads all values and compares them with the metadata. The caller
	// then gathers all rows of fields, so Verify may leave out values of these
	// fields if every bit pattern is valid. The bytes of all calls of progress
	// add up to the size of the file.
	Verify(ctx context.Context, fields []int, progress func(bytes int64)) error
}

// CheckStart returns an error unless a file begins with a magic. Files are recognized by their
// end, so nothing else reads it.
func CheckStart(ctx context.Context, content *resident.File, magic string) error {
	head := make([]byte, len(magic))
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return err
	}
	if string(head) != magic {
		return status.Errorf(status.DataLoss, "arrowio", "start of the file at byte 0: it begins with %q instead of %q", head, magic).
			WithHint("the data are damaged or cut short; write them again").With("offset", int64(0))
	}
	return nil
}

// Decoding is a decoding that has not begun.
type Decoding struct {
	// Memory estimates the bytes of memory that Run takes: stored bytes and the result. At
	// most MaxColumn count.
	Memory int64

	// Run reads and decompresses the column. If lists is true, it leaves out values, so
	// that the caller can read the lengths of lists. It then still returns the indices of a
	// dictionary of text, and the number of bytes of text. See [buffers.Decoded] for the
	// levels of text.
	//
	// Nothing else may refer to the memory of the result: after its use, it serves other
	// decodings.
	//
	// If Run finds that it needs more than Memory, it returns ErrEstimate, and the next
	// Decoding of this column has a larger estimate. A format with exact estimates never
	// does.
	Run func(ctx context.Context, lists bool) (*buffers.Decoded, error)
}

// MaxColumn is the most memory that the decoding of a column of a unit may take.
const MaxColumn = 1 << 30

// ErrEstimate is the error of a decoding that needs more memory than was estimated.
var ErrEstimate = errors.New("the column takes more memory than its metadata say")

// Metadata is what a format reads when it opens a file.
type Metadata struct {
	Format       string            // the name for users
	Schema       *arrowmeta.Schema // all columns
	Located      []bool            // by column: the metadata show where its buffers are
	Adapts       bool              // a decoding returns the buffers of any field with the same values, whatever the type of the column
	Sampled      bool              // columns follow from the first rows, so lists have no common length unless the caller gives one
	Mixed        bool              // lists are stored among the values, so that reading them reads all
	Digest       [32]byte          // hash of the schema and the division into record batches or row groups
	Units        []resident.Extent // stored bytes of each unit, in the order of the rows; a run of pages has the extent of its row group
	Bytes        []int64           // by unit: how many bytes are stored for it; nil for all bytes of the extent
	Dictionaries []resident.Extent // stored bytes of each dictionary, outside of the units
	Unchecked    []audit.Unchecked // what Verify does not check
}

// StoredBytes returns how many bytes are stored for a unit.
func (m *Metadata) StoredBytes(unit int) int64 {
	if m.Bytes != nil {
		return m.Bytes[unit]
	}
	return m.Units[unit].Length
}

// Unit is the header of a unit.
type Unit interface {
	Rows() int64

	// Nulls returns what the header tells about the nulls of a column.
	Nulls(column int) buffers.Nulls

	// Encoding names the compression or other encoding that a decoding must undo.
	// It is empty if rows can be copied from the file as they are stored.
	Encoding() string

	// SetPositions sets entry batch of the slices in each buffers.Plane of a column:
	// the number of elements, and the positions of the buffers in the file. It
	// leaves out nil slices. The position of a validity bitmap is -1 if the unit
	// is encoded, or has no nulls at this level of nesting.
	SetPositions(to *buffers.Column, batch, column int)

	// Uneven returns "", or the reason why the lists of a column cannot all have
	// the length that the shape of the field needs. It reads the header and a
	// few offsets.
	Uneven(column int, field *arrowtype.Field) (reason string, err error)
}

// UnevenLists describes why a number of values does not fit lists of a size.
func UnevenLists(lists, values, size int64) string {
	if lists > 0 && values%lists == 0 {
		return fmt.Sprintf("%d lists hold %d values, %d each, where the shape of the rows needs %d; pad or cut them to one length", lists, values, values/lists, size)
	}
	return fmt.Sprintf("its lists differ in length: %d lists hold %d values, where %d each would be %d; pad or cut them to one length", lists, values, size, lists*size)
}
