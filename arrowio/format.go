package arrowio

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// formats are the formats of files, in the order in which they are tried.
var formats = []format{ipcFile, ipcStream, parquetFormat{usualPages}}

// format is a kind of file. The package comment explains how to add one.
type format interface {
	// recognize reports whether a file of size bytes that begins with head
	// has this format. Head has headBytes bytes, or fewer if the file is
	// shorter.
	recognize(head []byte, size int64) bool

	// open reads the metadata of a file, and none of its values.
	open(ctx context.Context, content *resident.File) (contents, error)
}

// headBytes is the number of bytes at the beginning of a file that recognize
// receives.
const headBytes = 16

// contents is a file of some format: columns, whose rows are divided into units. A
// unit is a record batch, a row group, or a run of pages. Contents are safe for concurrent use.
// Their errors need not name the file.
type contents interface {
	// metadata returns what open has read.
	metadata() *metadata

	// scan reads the headers of the units first to last-1 and visits them in
	// order. A visit must not keep the unit.
	scan(ctx context.Context, first, last int, visit func(i int, u unit) error) error

	// decode reads and decompresses a column of a unit. If lists is true, it
	// leaves out values, so that the caller can read the lengths of lists. It then
	// still returns the indices of a dictionary of text, and the number of bytes of
	// text. See [buffers.Decoded] for the levels of text.
	// If it would take more than limit bytes of memory, and limit is less than
	// budgetBytes, the error is errPromise.
	// Nothing else may refer to the memory of the result: after its use, it serves
	// other decodings.
	decode(ctx context.Context, unit, column int, field *arrowtype.Field, lists bool, limit int64) (*buffers.Decoded, error)

	// promise returns the bytes of memory that decode takes for most columns with such
	// metadata. The limit for the others is budgetBytes.
	promise(ctx context.Context, unit, column int, field *arrowtype.Field) (int64, error)

	// likely returns about how many bytes a column of a unit has decoded.
	likely(ctx context.Context, unit, column int, field *arrowtype.Field) (int64, error)

	// dictionaries reads the dictionaries of columns, as fields describe them.
	// Dictionary.From is the first unit of this file that uses a dictionary.
	// The list of a column that is decoded without a dictionary is empty.
	dictionaries(ctx context.Context, columns []int, fields []*arrowtype.Field) ([][]*arrowtype.Dictionary, error)

	// verify reads all values and compares them with the metadata. The caller
	// then gathers all rows of fields, so verify may leave out values of these
	// fields for which every bit pattern is valid. The bytes of all calls of
	// progress add up to the size of the file.
	verify(ctx context.Context, fields []int, progress func(bytes int64)) error

	// unchecked lists what verify does not check.
	unchecked() []Unchecked
}

// metadata is what a format reads when it opens a file.
type metadata struct {
	format       string            // for [FileInfo]
	schema       *arrowmeta.Schema // of all columns
	located      []bool            // by column: the metadata show where its buffers are
	adapts       bool              // decode returns the buffers of any field with the same values, whatever the type of the column
	mixed        bool              // lists are stored among the values, so that reading them reads all
	digest       [32]byte          // of the schema and the division into record batches or row groups
	units        []resident.Extent // stored bytes of each unit, in the order of the rows; of a run of pages, those of its row group
	bytes        []int64           // by unit: how many bytes are stored for it; nil if all of units
	dictionaries []resident.Extent // stored bytes of each dictionary, outside of the units
}

// stored returns how many bytes are stored for a unit.
func (m *metadata) stored(unit int) int64 {
	if m.bytes != nil {
		return m.bytes[unit]
	}
	return m.units[unit].Length
}

// unit is the header of a unit.
type unit interface {
	rows() int64

	// nulls returns what the header tells about the nulls of a column.
	nulls(column int) buffers.Nulls

	// encoding names the compression or other encoding that decode must undo.
	// It is empty if rows can be copied from the file as they are stored.
	encoding() string

	// setPositions sets entry batch of the slices in each buffers.Plane of a column:
	// the number of elements, and the positions of the buffers in the file. It
	// leaves out nil slices. The position of a validity bitmap is -1 if the unit
	// is encoded, or has no nulls at this level of nesting.
	setPositions(to *buffers.Column, batch, column int)

	// uneven returns "", or the reason why the lists of a column cannot all have
	// the length that the shape of the field needs. It reads the header and a
	// few offsets.
	uneven(column int, field *arrowtype.Field) (reason string, err error)
}

// contentsOf recognizes and opens the contents of a file.
func contentsOf(ctx context.Context, content *resident.File) (contents, error) {
	f, err := formatOf(ctx, content)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, arrowmeta.Foreign(blob.Reader(ctx, content), content.Size())
	}
	return f.open(ctx, content)
}

// recognized reports whether a blob has one of the formats. A blob that cannot be read has none.
func recognized(ctx context.Context, b blob.Blob) bool {
	f, err := formatOf(ctx, resident.NewFile(b))
	return err == nil && f != nil
}

// formatOf returns the format of a file by its first bytes, or nil.
func formatOf(ctx context.Context, content *resident.File) (format, error) {
	head := make([]byte, min(headBytes, content.Size()))
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return nil, err
	}
	for _, f := range formats {
		if f.recognize(head, content.Size()) {
			return f, nil
		}
	}
	return nil, nil
}
