// Package gather copies parts of rows, which lie anywhere in memory, into
// contiguous blocks. It is the inner loop of every Arrow source.
//
// A row is given by its address, because the rows of one step may lie in many
// mappings and record batches. A [Program] lists which elements of a row a block
// takes and how they are converted; [Compile] makes it from the boxes of a
// source.Part. A [Job] consists of a program, a range of the rows and a
// destination. [Run] does all jobs over one list of addresses, tile by tile, so
// that a row is loaded from memory once for all its blocks.
//
// Each random row begins with a miss in the cache and in the TLB, because the
// hardware prefetcher cannot predict its address. So a later row is prefetched while
// a row is copied.
//
// The package does not check addresses. Every address must be the start of a row, which
// extends to the last element that the program takes. The row must stay valid until Run
// returns, and must not be on a goroutine's stack. Run reads no byte beyond the elements of
// a program, because a row may end at the last byte of a mapping. Run writes no byte
// outside of Dst.
package gather

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// Job copies the program's elements of rows[Rows[0]:Rows[1]], row after row, to
// Dst. The length of Dst is the number of rows times Program.Bytes. Dst
// may have any alignment.
type Job struct {
	Program *Program
	Rows    [2]int
	Dst     []byte
}

// Options select how rows are copied.
type Options struct {
	// Zeros allows address 0 in the list, which stands for a row of zeros.
	Zeros bool

	// Streaming bypasses the cache on stores. It is faster if the destination
	// would leave the cache before it is read (see [OutgrowsCache]).
	Streaming bool
}

// RangeError reports the first value that does not fit the type of a narrowing
// conversion. The blocks of the failed Run are undefined.
type RangeError struct {
	Row   int // index into rows
	Value any // int64 or uint64
	To    string
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("gather: row %d holds %d, which %s cannot", e.Row, e.Value, e.To)
}

// Run does the jobs over one list of row addresses. For a program of conversion Bits
// the addresses count bits (see [BitAddress]). The error is a *RangeError, or of code
// Internal if a job does not fit the rows or its destination.
func Run(rows []uintptr, jobs []Job, o Options) error {
	for i := range jobs {
		if err := jobs[i].check(len(rows)); err != nil {
			return err
		}
	}
	g := gatherer{rows, o}
	return g.sweep(jobs)
}

func (j *Job) check(rows int) error {
	n := j.Rows[1] - j.Rows[0]
	if j.Rows[0] < 0 || n < 0 || j.Rows[1] > rows || n*j.Program.bytes != len(j.Dst) {
		return status.Errorf(status.Internal, "gather", "a job takes rows %v of %d, %d bytes each, into %d bytes",
			j.Rows, rows, j.Program.bytes, len(j.Dst))
	}
	return nil
}

// gatherer is the state of one Run.
type gatherer struct {
	rows []uintptr
	Options
}

// sweep walks the rows from first to last. The set of active jobs changes only
// where a job begins or ends.
func (g *gatherer) sweep(jobs []Job) error {
	var memory [2][32]*Job
	waiting, active := memory[0][:0], memory[1][:0]
	for i := range jobs {
		if len(jobs[i].Dst) > 0 {
			waiting = append(waiting, &jobs[i])
		}
	}
	slices.SortStableFunc(waiting, func(a, b *Job) int { return cmp.Compare(a.Rows[0], b.Rows[0]) })
	for row := 0; len(waiting)+len(active) > 0; {
		if len(active) == 0 {
			row = waiting[0].Rows[0]
		}
		for len(waiting) > 0 && waiting[0].Rows[0] == row {
			active, waiting = append(active, waiting[0]), waiting[1:]
		}
		end := active[0].Rows[1]
		for _, j := range active[1:] {
			end = min(end, j.Rows[1])
		}
		if len(waiting) > 0 {
			end = min(end, waiting[0].Rows[0])
		}
		if err := g.tiles(active, row, end); err != nil {
			return err
		}
		row = end
		active = slices.DeleteFunc(active, func(j *Job) bool { return j.Rows[1] == row })
	}
	return nil
}

// tileBytes is the size of a tile of source rows. A tile stays in the cache while
// several jobs copy from it.
const tileBytes = 64 << 10

// tiles copies rows [from, to) for the active jobs.
func (g *gatherer) tiles(active []*Job, from, to int) error {
	tile := to - from
	if len(active) > 1 || !active[0].Program.simple() {
		extent := 1
		for _, j := range active {
			extent = max(extent, j.Program.extent)
		}
		tile = max(tileBytes/extent, 8)
	}
	for ; from < to; from += tile {
		for _, j := range active {
			if err := g.block(j, from, min(from+tile, to)); err != nil {
				return err
			}
		}
	}
	return nil
}

// block copies rows [from, to) of one job, and clears rows with address 0.
func (g *gatherer) block(j *Job, from, to int) error {
	width := j.Program.bytes
	dst := j.Dst[(from-j.Rows[0])*width : (to-j.Rows[0])*width]
	if !g.Zeros {
		return g.run(j.Program, from, to, dst)
	}
	for from < to {
		end := from + 1
		for end < to && (g.rows[end] == 0) == (g.rows[from] == 0) {
			end++
		}
		part := dst[:(end-from)*width]
		if g.rows[from] == 0 {
			clear(part)
		} else if err := g.run(j.Program, from, end, part); err != nil {
			return err
		}
		from, dst = end, dst[len(part):]
	}
	return nil
}

// run copies rows [from, to). No row has address 0.
func (g *gatherer) run(p *Program, from, to int, dst []byte) error {
	for i := range p.pieces {
		piece := &p.pieces[i]
		for k := range piece.passes {
			first, at := piece.pass(k)
			c := copier{
				rows: g.rows[from:to], src: uintptr(first),
				dst: dst[at*p.dst:], width: p.bytes,
				run: piece.run, count: piece.inner.count, stride: piece.inner.stride,
			}
			if p.conv == Copy {
				c.copy(g.rows[from:], g.Streaming)
			} else if err := c.convert(p.conv, from); err != nil {
				return err
			}
		}
	}
	return nil
}
