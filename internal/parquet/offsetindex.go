package parquet

import (
	"errors"
	"fmt"
	"sort"

	"github.com/meshfeed/meshfeed/internal/thrift"
)

// OffsetIndex lists the data pages of a chunk (the struct OffsetIndex). A page begins with a
// row. Some have no rows, although the format forbids it: Arrow for C++ writes them before the
// last row of lists. Other pages, such as a dictionary, lie before the first one.
type OffsetIndex struct {
	Offsets []int64 // offset of each page in the file, then of the end of the chunk
	Rows    []int64 // the first row of each page in the row group, then the rows of the group
}

// Len returns the number of pages.
func (x *OffsetIndex) Len() int { return len(x.Rows) - 1 }

// Pages returns the pages that hold the rows from start to stop-1 of the row group: from
// first to last-1. Pages without rows belong to the rows before them.
func (x *OffsetIndex) Pages(start, stop int64) (first, last int) {
	first = sort.Search(x.Len(), func(i int) bool { return x.Rows[i+1] > start })
	last = sort.Search(x.Len(), func(i int) bool { return x.Rows[i] >= stop })
	for last < x.Len() && x.Rows[last+1] == stop {
		last++
	}
	return first, last
}

// pageLocation is the struct PageLocation.
type pageLocation struct {
	offset, row int64
	bytes       int32 // bytes of the page with its header
}

// ReadOffsetIndex reads the offset index of a chunk in a row group with this many rows. The
// pages of the result lie within the chunk, in the order of their rows.
func ReadOffsetIndex(data []byte, c *Chunk, rows int64) (*OffsetIndex, error) {
	r := thrift.New(data, "offset index")
	var pages []pageLocation
	r.Struct(func(id int, kind thrift.Kind) {
		if id == 1 {
			pages = thrift.Structs(r, kind, len(data), "pages", readLocation)
		}
	})
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, errors.New("an offset index without pages")
	}
	if at := pages[0].offset; at != c.Data {
		return nil, fmt.Errorf("the first page of the offset index is at byte %d, but the first page of the column is at byte %d", at, c.Data)
	}
	x := &OffsetIndex{Offsets: make([]int64, 0, len(pages)+1), Rows: make([]int64, 0, len(pages)+1)}
	for i, p := range pages {
		end, next := c.Offset+c.Length, rows
		if i+1 < len(pages) {
			end, next = pages[i+1].offset, pages[i+1].row
		}
		switch {
		case p.row < 0 || p.row > next || i == 0 && p.row != 0:
			return nil, fmt.Errorf("page %d of the offset index has the rows from %d to %d of %d", i, p.row, next, rows)
		case p.offset < c.Offset || p.bytes <= 0 || end > c.Offset+c.Length || int64(p.bytes) > end-p.offset:
			return nil, fmt.Errorf("page %d of the offset index has %d bytes from byte %d to %d, in a column from byte %d to %d", i, p.bytes, p.offset, end, c.Offset, c.Offset+c.Length)
		}
		x.Offsets, x.Rows = append(x.Offsets, p.offset), append(x.Rows, p.row)
	}
	x.Offsets, x.Rows = append(x.Offsets, c.Offset+c.Length), append(x.Rows, rows)
	return x, nil
}

// readLocation reads the struct PageLocation.
func readLocation(r *thrift.Reader) (p pageLocation) {
	p.offset, p.row = -1, -1
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			p.offset = r.Int64(kind)
		case 2:
			p.bytes = r.Int32(kind)
		case 3:
			p.row = r.Int64(kind)
		}
	})
	return p
}
