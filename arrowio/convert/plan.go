package convert

import (
	"fmt"
	"math/bits"

	"github.com/meshfeed/meshfeed/core/source"
)

// sizes are numbers of bytes.
type sizes struct {
	file   int64 // a file that is written
	window int64 // records that are read at once
	most   int64 // all windows in memory; a larger window is cut and read again
	batch  int64 // a record batch
}

// maxWindow bounds the bytes of all windows in memory, unless there is one of one row.
const maxWindow = 1 << 30

var usual = sizes{file: 256 << 20, window: 64 << 20, most: maxWindow, batch: 8 << 20}

// batchRows bounds the rows of a record batch.
const batchRows = 64 << 10

// plan is the division of the records. It rests on an estimate of the bytes of a row, so it
// follows from the input alone.
type plan struct {
	sizes
	units    []int64 // records of each unit of the input
	rowBytes int64   // estimate
}

// newPlan returns the plan of a dataset. Bytes is the size of its files.
func newPlan(units []int64, fields []source.Field, records, bytes int64) plan {
	p := plan{sizes: usual, units: units, rowBytes: 1}
	for _, f := range fields {
		p.rowBytes += int64(f.RowBytes())
	}
	if records > 0 {
		p.rowBytes = max(p.rowBytes, bytes/records)
	}
	return p
}

// rows returns how many rows have some bytes, at least one.
func (p plan) rows(bytes int64) int64 { return max(1, bytes/p.rowBytes) }

// batchRows returns the rows of a record batch: a power of two.
func (p plan) batchRows() int64 {
	return 1 << (bits.Len64(uint64(min(p.rows(p.batch), batchRows))) - 1)
}

// files returns the number of records of each file, at least one file. If rowsPerFile is 0, a
// file has whole units, so that each is decoded once.
func (p plan) files(records, rowsPerFile int64) []int64 {
	var list []int64
	if rowsPerFile > 0 {
		list = cut(nil, records, rowsPerFile)
	} else {
		list = p.merge(p.units, p.rows(p.file))
	}
	if len(list) == 0 {
		return []int64{0}
	}
	return list
}

// windows divides the records of a file, start to stop, into runs that are read at once.
func (p plan) windows(start, stop int64) []int64 {
	return p.merge(source.UnitsBetween(p.units, start, stop), p.rows(p.window))
}

// merge joins units up to a number of rows. It cuts units that do not fit into memory.
func (p plan) merge(units []int64, rows int64) (list []int64) {
	largest := p.rows(p.most)
	for _, n := range units {
		last := len(list) - 1
		switch {
		case n == 0:
		case n > largest:
			list = cut(list, n, largest)
		case last >= 0 && list[last]+n <= rows:
			list[last] += n
		default:
			list = append(list, n)
		}
	}
	return list
}

// cut appends pieces of a number of records. The last piece may have fewer.
func cut(list []int64, records, rows int64) []int64 {
	for ; records > 0; records -= rows {
		list = append(list, min(rows, records))
	}
	return list
}

// nameOf returns the name of a file. The names of all files have the order of their numbers.
func nameOf(i, of int) string {
	digits := max(5, len(fmt.Sprint(of)))
	return fmt.Sprintf("rows-%0*d-of-%0*d.arrow", digits, i, digits, of)
}

// share returns the numbers of the files of a part: from first to last-1.
func share(files, part, parts int) (first, last int) {
	at := func(part int) int { return int(int64(files) * int64(part) / int64(parts)) }
	return at(part - 1), at(part)
}
