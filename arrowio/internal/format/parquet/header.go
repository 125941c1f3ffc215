package parquet

import (
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// header is the header of a unit.
type header struct {
	file *file
	unit *unit
}

func (h header) group() *parquet.Group { return &h.file.meta.Groups[h.unit.group] }

func (h header) chunkOf(column int) (*parquet.Chunk, *parquet.Leaf) {
	leaf := h.file.leaf(column)
	return &h.group().Chunks[leaf], &h.file.meta.Leaves[leaf]
}

// Rows implements format.Unit.
func (h header) Rows() int64 { return h.unit.stop - h.unit.start }

// Encoding implements format.Unit. It is not empty even if the pages are not compressed, because
// they must be decoded all the same.
func (h header) Encoding() string {
	if chunks := h.group().Chunks; len(chunks) > 0 && chunks[0].Codec != parquet.Uncompressed {
		return chunks[0].Codec.String()
	}
	return "pages"
}

// Nulls implements format.Unit. The count of nulls of the row group includes empty lists, so it
// proves that a row is null only for columns without lists.
func (h header) Nulls(column int) buffers.Nulls {
	c, leaf := h.chunkOf(column)
	for _, n := range leaf.Nodes {
		if n.Repetition == parquet.Optional {
			return buffers.Nulls{May: c.Nulls != 0, Has: c.Nulls > 0 && leaf.MaxRepetition() == 0}
		}
	}
	return buffers.Nulls{}
}

// SetPositions implements format.Unit. It sets no positions, because the values must be
// decoded. The number of values in the row group bounds the number of elements of each level,
// which a decoding counts.
func (h header) SetPositions(to *buffers.Column, batch, column int) {
	c, _ := h.chunkOf(column)
	format.Encoded{Elements: c.Values}.SetPositions(to, batch, column)
}

// Uneven implements format.Unit. It compares the values of the row group, because the numbers of
// values in its pages are not known.
func (h header) Uneven(column int, field *arrowtype.Field) (string, error) {
	c, leaf := h.chunkOf(column)
	want := int64(1)
	for n := range field.Levels[:len(field.Levels)-1] {
		want *= int64(field.List(n).Length())
	}
	if rows := h.group().Rows; c.Nulls == 0 && leaf.MaxRepetition() > 0 && c.Values != rows*want {
		return format.UnevenLists(rows, c.Values, want), nil
	}
	return "", nil
}
