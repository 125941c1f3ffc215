package ipc

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// recordBatch is a record batch.
type recordBatch struct {
	file   *file
	ctx    context.Context
	number int
	header *arrowmeta.RecordBatch
}

// Rows implements format.Unit.
func (u *recordBatch) Rows() int64 { return u.header.Length }

// Encoding implements format.Unit. A record batch far away is fetched whole, as if it were encoded.
func (u *recordBatch) Encoding() string {
	switch {
	case u.header.Compression != arrowmeta.Uncompressed:
		return u.header.Compression.String()
	case u.file.content.Fetches():
		return "fetched"
	}
	return ""
}

// Nulls implements format.Unit.
func (u *recordBatch) Nulls(column int) buffers.Nulls {
	outer := &u.file.meta.Columns[column]
	for c := outer; c.Located; c = inner(c) {
		if u.header.Node(c).Nulls > 0 {
			return buffers.Nulls{May: true, Has: c == outer}
		}
		if len(c.Children) != 1 && arrowtype.Member(c.Field) < 0 {
			break
		}
	}
	return buffers.Nulls{}
}

// SetPositions implements format.Unit.
func (u *recordBatch) SetPositions(to *buffers.Column, batch, column int) {
	b, col, body := u.header, &u.file.meta.Columns[column], u.file.facts.Units[u.number].Offset
	for n := range to.Planes {
		if n > 0 && len(col.Children) == 0 { // the bytes of text
			p, bytes := &to.Planes[n], b.Buffers(col)[dataBuffer(col)+1]
			p.Data[batch], p.Length[batch] = body+bytes.Offset, bytes.Length
			if p.Valid != nil {
				p.Valid[batch] = -1
			}
			break
		}
		if n > 0 {
			col = inner(col)
		}
		p, node, stored := &to.Planes[n], b.Node(col), b.Buffers(col)
		if p.Valid != nil {
			p.Valid[batch] = -1
			if col.Validity && node.Nulls > 0 && u.Encoding() == "" {
				p.Valid[batch] = body + stored[0].Offset
			}
		}
		if p.Data != nil {
			p.Data[batch] = body + stored[dataBuffer(col)].Offset
		}
		if p.Length != nil {
			p.Length[batch] = node.Length
		}
		if p.Buffers != nil {
			for _, data := range stored[dataBuffer(col)+1:] {
				p.Buffers[batch] = append(p.Buffers[batch], buffers.Extent{At: body + data.Offset, Bytes: data.Length})
			}
		}
	}
}

// Uneven implements format.Unit. It compares the number of lists with the number of their values. It
// returns the reason if they do not fit.
func (u *recordBatch) Uneven(column int, field *arrowtype.Field) (string, error) {
	b, col := u.header, &u.file.meta.Columns[column]
	for n := range field.Levels[:len(field.Levels)-1] {
		list, child := field.List(n), &col.Children[0]
		if nulls := b.Node(col).Nulls; !list.Direct() {
			lists, have, size := b.Node(col).Length-nulls, b.Node(child).Length, int64(list.Length())
			want, exact := lists*size, n == 0 && nulls == 0 // otherwise null or unused lists may have more values
			if have > want && exact && b.Compression == arrowmeta.Uncompressed {
				var err error // values outside of all lists are legal: do not count them
				if have, err = u.referenced(col, lists, int(list.Buffer().Bits/8)); err != nil {
					return "", err
				}
			}
			if have < want || have > want && exact {
				return format.UnevenLists(lists, have, size), nil
			}
		}
		col = child
	}
	return "", nil
}

// referenced returns how many values the lists of a column hold.
func (u *recordBatch) referenced(col *arrowmeta.Column, lists int64, width int) (int64, error) {
	at := u.file.facts.Units[u.number].Offset + u.header.Buffers(col)[dataBuffer(col)].Offset
	var ends [2]int64
	for k, list := range []int64{0, lists} {
		var offset [8]byte
		if err := blob.ReadFull(u.ctx, u.file.content, offset[:width], at+list*int64(width)); err != nil {
			return 0, err
		}
		ends[k] = arrowtype.Integer(offset[:], width)
	}
	return ends[1] - ends[0], nil
}

// inner returns the column below a list, or that which holds the rows of a struct.
func inner(c *arrowmeta.Column) *arrowmeta.Column {
	return &c.Children[max(arrowtype.Member(c.Field), 0)]
}

// dataBuffer returns the index, among a column's buffers, of the one that holds
// offsets, indices or values. A validity bitmap is before it.
func dataBuffer(c *arrowmeta.Column) int {
	if c.Validity {
		return 1
	}
	return 0
}
