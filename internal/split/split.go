// Package split cuts arrays in memory into the blocks that the devices of a process
// hold.
//
// An array has any strides. A process may have the whole array, or only its own part:
// see [Array]. A [Splitter] is the plan for arrays of the same shapes and strides. Its
// method Split copies the elements, and narrows 64-bit types.
package split

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// Array describes an array in memory.
//
// Each dimension has the global size, or the size of the part that the process holds.
// A part consists of the ranges of the process's blocks, in increasing order without
// gaps.
type Array struct {
	Name    string
	Type    dtype.Type // the type of the layout's array, or one that is narrowed to it
	Shape   []int
	Strides []int // in bytes, of any sign, or 0; nil for C order
}

// Splitter cuts arrays into blocks. It is safe for concurrent use.
type Splitter struct {
	arrays []Array
	pieces []piece
	bytes  int
}

// piece is a part of a block that one goroutine copies.
type piece struct {
	array   int // number in arrays
	block   int // in the order of the process
	at      int // first byte in the block
	program *gather.Program
}

// pieceBytes is the approximate size of a piece. Fewer bytes take too little time to gain
// from another goroutine.
const pieceBytes = 4 << 20

// New makes the plan for the arrays and blocks of one process of a layout. The given arrays
// are in the order of the layout's.
func New(arrays []layout.Array, blocks []layout.Block, given []Array) (*Splitter, error) {
	if len(given) != len(arrays) {
		return nil, fail("the layout has %d arrays, but %d were given", len(arrays), len(given))
	}
	s := &Splitter{arrays: given}
	byArray := make([][]layout.Block, len(arrays))
	for _, b := range blocks {
		byArray[b.Array] = append(byArray[b.Array], b)
	}
	parts := make([]*part, len(given))
	for i := range given {
		var err error
		if parts[i], err = newPart(&arrays[i], &given[i], byArray[i]); err != nil {
			return nil, err
		}
	}
	for i, b := range blocks {
		at := 0
		for _, box := range divide(parts[b.Array].local(b), arrays[b.Array].Type.Size()) {
			p := parts[b.Array].program(box)
			s.pieces = append(s.pieces, piece{b.Array, i, at, p})
			at += p.Bytes()
		}
		s.bytes += at
	}
	return s, nil
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "split", format, args...)
}

// part describes which elements of the global array the given array has.
type part struct {
	given      *Array
	conversion gather.Conversion
	starts     [][]int // by dimension: the starts of the process's ranges; nil if the dimension is whole
}

func newPart(a *layout.Array, given *Array, blocks []layout.Block) (*part, error) {
	p := &part{given: given, starts: make([][]int, len(given.Shape))}
	var ok bool
	if p.conversion, ok = gather.Conversions(given.Type, a.Type); !ok || given.Name != a.Name {
		return nil, fail("array %q of type %v was given, but the layout has array %q of type %v", given.Name, given.Type, a.Name, a.Type)
	}
	if len(given.Shape) != len(a.Shape) || given.Strides != nil && len(given.Strides) != len(a.Shape) {
		return nil, fail("array %q has the shape %v and the strides %v, but the global shape is %v", a.Name, given.Shape, given.Strides, a.Shape)
	}
	for d, n := range given.Shape {
		if n == a.Shape[d] {
			continue
		}
		size := 0
		for _, b := range blocks {
			if start := b.Index[d][0]; !slices.Contains(p.starts[d], start) {
				p.starts[d] = append(p.starts[d], start)
				size += b.Index[d][1] - start
			}
		}
		if n != size {
			return nil, fail("dimension %d of array %q has the size %d: expected %d, or %d for the part of this process", d, a.Name, n, a.Shape[d], size)
		}
		slices.Sort(p.starts[d])
	}
	return p, nil
}

// local returns the box of a block in the given array.
func (p *part) local(b layout.Block) [][2]int {
	box := slices.Clone(b.Index)
	for d, starts := range p.starts {
		if starts != nil { // all ranges of a dimension have one size
			size := box[d][1] - box[d][0]
			at := slices.Index(starts, box[d][0]) * size
			box[d] = [2]int{at, at + size}
		}
	}
	return box
}

// divide cuts a box along its outermost dimension into boxes of about pieceBytes.
func divide(box [][2]int, size int) [][][2]int {
	outer := slices.IndexFunc(box, func(r [2]int) bool { return r[1]-r[0] != 1 })
	for _, r := range box {
		size *= r[1] - r[0]
	}
	if outer < 0 || size < 2*pieceBytes {
		return [][][2]int{box}
	}
	start, n := box[outer][0], box[outer][1]-box[outer][0]
	pieces := min(size/pieceBytes, n)
	out := make([][][2]int, pieces)
	for i := range out {
		out[i] = slices.Clone(box)
		out[i][outer] = [2]int{start + i*n/pieces, start + (i+1)*n/pieces}
	}
	return out
}

// program compiles the copy of a box.
func (p *part) program(box [][2]int) *gather.Program {
	size := p.given.Type.Size()
	if p.given.Strides == nil {
		return gather.Compile(p.given.Shape, size, [][][2]int{box}, p.conversion)
	}
	return gather.CompileStrided(p.given.Strides, size, [][][2]int{box}, p.conversion)
}

// batchesInMemory is the likely number of batches in memory at the same time.
const batchesInMemory = 4

// Split copies every block to its destination. Data has the address of each array's
// element 0, 0, …. The memory of the arrays must stay valid until Split returns.
func (s *Splitter) Split(data []uintptr, dst func(block int) []byte) error {
	if len(data) != len(s.arrays) {
		return fail("the splitter cuts %d arrays, but %d were given", len(s.arrays), len(data))
	}
	work := copying{Splitter: s, data: data, dst: make([][]byte, 0, len(s.pieces))}
	work.Streaming = gather.OutgrowsCache(batchesInMemory * s.bytes)
	for _, p := range s.pieces {
		work.dst = append(work.dst, dst(p.block)[p.at:p.at+p.program.Bytes()])
	}
	for range min(s.bytes/pieceBytes, len(s.pieces), runtime.NumCPU()) - 1 {
		work.Go(work.copy)
	}
	work.copy()
	work.Wait()
	if work.failed == nil {
		return nil
	}
	return s.explain(work.failed.array, work.failed.err)
}

// copying is the state of one Split.
type copying struct {
	*Splitter
	gather.Options
	sync.WaitGroup

	data []uintptr
	dst  [][]byte     // destination of every piece
	next atomic.Int64 // the piece to copy next

	mu     sync.Mutex
	failed *failure // failure of the first piece that failed
}

type failure struct {
	array, piece int
	err          error
}

// copy copies pieces until none is left.
func (c *copying) copy() {
	for i := int(c.next.Add(1)) - 1; i < len(c.pieces); i = int(c.next.Add(1)) - 1 {
		p := &c.pieces[i]
		jobs := []gather.Job{{Program: p.program, Rows: [2]int{0, 1}, Dst: c.dst[i]}}
		if err := gather.Run(c.data[p.array:p.array+1], jobs, c.Options); err != nil {
			c.fail(&failure{p.array, i, err})
			return
		}
	}
}

func (c *copying) fail(f *failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil || f.piece < c.failed.piece {
		c.failed = f
	}
	c.next.Store(int64(len(c.pieces)))
}

// explain names the array with a number that the narrower type cannot hold.
func (s *Splitter) explain(array int, err error) error {
	out, ok := errors.AsType[*gather.RangeError](err)
	if !ok {
		return err
	}
	a := &s.arrays[array]
	return status.Errorf(status.OutOfRange, "split", "array %q holds %d, which %s cannot", a.Name, out.Value, out.To).
		WithHint("deliver the array as %v (in JAX: jax.config.update(\"jax_enable_x64\", True)), or give smaller values", a.Type).
		With("array", a.Name)
}
