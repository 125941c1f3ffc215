package arrowio

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// formats are the formats of files, in the order in which they are tried.
var formats = []format{ipcFile, ipcStream}

// format is a kind of file. The package comment explains how to add one.
type format interface {
	// recognize reports whether a file of size bytes that begins with head
	// has this format. Head has headBytes bytes, or those of the whole file.
	recognize(head []byte, size int64) bool

	// open reads the metadata of a file, and none of its values.
	open(ctx context.Context, content *resident.File) (contents, error)
}

// headBytes is the length of the beginning of a file by which recognize detects its
// format.
const headBytes = 16

// contents is a file of some format: columns, whose rows are divided into units. A
// unit is a record batch or a row group. Contents are safe for concurrent use.
// Their errors need not name the file.
type contents interface {
	// metadata returns what open has read.
	metadata() *metadata

	// scan reads the headers of the units first to last-1 and visits them in
	// order. A visit must not keep the unit.
	scan(ctx context.Context, first, last int, visit func(i int, u unit) error) error

	// decode reads a column of a unit: all buffers of its field, or, if lists is
	// true, only those with the positions of its lists.
	decode(ctx context.Context, unit, column int, field *arrowtype.Field, lists bool) (*table.Decoded, error)

	// dictionaries reads the dictionaries of columns, as fields describe them.
	// Dictionary.From is the first unit of this file that uses a dictionary.
	// The list of a column that is decoded without a dictionary is empty.
	dictionaries(ctx context.Context, columns []int, fields []*arrowtype.Field) ([][]*arrowtype.Dictionary, error)

	// verify reads all values and compares them with what the metadata
	// promise. The rows of fields are gathered afterwards, so verify need not
	// read values of these fields that cannot be wrong. Calls of progress add up
	// to the size of the file.
	verify(ctx context.Context, fields []int, progress func(bytes int64)) error

	// unchecked lists what verify does not check.
	unchecked() []Unchecked
}

// metadata is what a format reads when it opens a file.
type metadata struct {
	format       string            // for [FileInfo]
	schema       *arrowmeta.Schema // of all columns
	located      []bool            // by column: its values can be found
	digest       [32]byte          // of the schema and the division into units
	units        []extent          // stored bytes of each unit, in the order of the rows
	dictionaries []extent          // stored bytes of each dictionary, outside of the units
}

// extent is a range of a file's bytes.
type extent struct{ offset, length int64 }

// unit is the header of a unit.
type unit interface {
	rows() int64

	// hasNulls reports whether a column may have nulls, also within lists.
	hasNulls(column int) bool

	// encoding names what decode has to undo; it is empty if rows can be
	// gathered from the file as they are stored.
	encoding() string

	// setPositions fills entry batch of every list of a column's planes that is
	// not nil: the number of elements, and the positions of the
	// buffers in the file. The position of a validity bitmap is -1 if the unit
	// is encoded, or has no nulls at this level.
	setPositions(to *table.Column, batch, column int)

	// uneven returns the reason why the lists of a column cannot have the
	// shape of the field, or "". It reads the header and a few offsets.
	uneven(column int, field *arrowtype.Field) (reason string, err error)
}

// contentsOf recognizes and opens the contents of a file.
func contentsOf(ctx context.Context, content *resident.File) (contents, error) {
	head := make([]byte, min(headBytes, content.Size()))
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return nil, err
	}
	for _, f := range formats {
		if f.recognize(head, content.Size()) {
			return f.open(ctx, content)
		}
	}
	return nil, arrowmeta.Foreign(blob.Reader(ctx, content), content.Size())
}

// parquetHint says how to make an IPC file of a Parquet file.
const parquetHint = `write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow.parquet; ` +
	`pyarrow.feather.write_feather(pyarrow.parquet.read_table("in.parquet"), "out.arrow", compression="uncompressed")`
