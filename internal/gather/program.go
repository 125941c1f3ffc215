package gather

import "github.com/meshfeed/meshfeed/core/dtype"

// Conversion is how each element is converted while it is copied.
type Conversion uint8

// The conversions. Narrowing an integer fails on a value out of range;
// floating-point values round to the nearest and overflow to infinity.
const (
	Copy                  Conversion = iota
	Bits                             // one bit, least significant first, to one byte 0 or 1
	Int64ToInt32                     // with range check
	Uint64ToUint32                   // with range check
	Float64ToFloat32                 //
	Complex128ToComplex64            //
)

// Conversions returns how elements of one type become elements of another: unchanged, or as
// its [dtype.Type.Narrow] type. ok is false if such a conversion does not exist.
func Conversions(from, to dtype.Type) (c Conversion, ok bool) {
	if from == to {
		return Copy, true
	}
	c, ok = narrowing[to]
	return c, ok && to == from.Narrow()
}

var narrowing = map[dtype.Type]Conversion{
	dtype.Int32:     Int64ToInt32,
	dtype.Uint32:    Uint64ToUint32,
	dtype.Float32:   Float64ToFloat32,
	dtype.Complex64: Complex128ToComplex64,
}

// units returns the size of an element in the source, in bytes (bits for Bits),
// and in the destination, in bytes. For Copy an element is a byte.
func (c Conversion) units() (src, dst int) {
	switch c {
	case Copy, Bits:
		return 1, 1
	case Complex128ToComplex64:
		return 16, 8
	default:
		return 8, 4
	}
}

// Program lists which elements of a row a block takes, in which order, and how they
// are converted. It is immutable.
type Program struct {
	conv     Conversion
	pieces   []piece
	src, dst int // units of an element
	bytes    int // bytes of one row in the destination
	extent   int // end of the last element that it reads, in bytes (bits for Bits) after the row's address
}

// Bytes returns the size of one row of the block.
func (p *Program) Bytes() int { return p.bytes }

// Element returns the size of the block's rows if each is a copy of the row's
// first 1, 2, 4, 8, 16 or 32 bytes, else 0. A caller may copy these itself.
func (p *Program) Element() int {
	switch p.bytes {
	case 1, 2, 4, 8, 16, 32:
		if p.conv == Copy && p.simple() && p.pieces[0].run == p.bytes && p.pieces[0].first == 0 {
			return p.bytes
		}
	}
	return 0
}

// simple reports whether one pass over the rows is enough.
func (p *Program) simple() bool { return len(p.pieces) == 1 && p.pieces[0].passes == 1 }

// piece is one box of a row: runs of adjacent elements at regular distances.
// Distances in the source count bytes, or bits for Bits. All other numbers count
// elements, which are single bytes for Copy.
type piece struct {
	first  int    // distance of the first element from the row's address
	at     int    // first element in the destination, where the piece is contiguous
	run    int    // adjacent elements
	inner  loop   // the innermost repeat; its count is 1 without one
	outer  []loop // the other repeats, innermost first
	passes int    // product of the outer counts
}

type loop struct{ count, stride int }

// pass returns the distance of the first source element, and the first
// destination element, of the k-th execution of the inner repeat.
func (p *piece) pass(k int) (first, at int) {
	first, at = p.first, p.at+k*p.run*p.inner.count
	for _, l := range p.outer {
		first += k % l.count * l.stride
		k /= l.count
	}
	return first, at
}

// elements returns the number of elements of the piece.
func (p *piece) elements() int { return p.run * p.inner.count * p.passes }

// end returns the distance to the end of the last element.
func (p *piece) end(unit int) int {
	end := p.first + max(0, (p.inner.count-1)*p.inner.stride) + p.run*unit
	for _, l := range p.outer {
		end += max(0, (l.count-1)*l.stride)
	}
	return end
}

// Compile makes the program that takes boxes from rows of the given shape, in
// C order without gaps, and concatenates them in order. An element has size
// bytes, which only Copy uses. A box holds a [start, stop) range per dimension.
// The box of a scalar is empty.
func Compile(shape []int, size int, boxes [][][2]int, conv Conversion) *Program {
	stride, _ := conv.units()
	if conv == Copy {
		stride = size
	}
	strides := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		strides[d] = stride
		stride *= shape[d]
	}
	return CompileStrided(strides, size, boxes, conv)
}

// CompileStrided is Compile for rows with any strides: distances in bytes (bits for Bits)
// between neighbors in each dimension. Strides may be negative or zero. The address of a
// row is the address of its element 0, 0, …. The caller makes sure that elements before
// that address are valid, too.
func CompileStrided(strides []int, size int, boxes [][][2]int, conv Conversion) *Program {
	p := &Program{conv: conv}
	p.src, p.dst = conv.units()
	if conv != Copy {
		size = 1
	}
	elements := 0
	for _, box := range boxes {
		next := compileBox(strides, box, size, p.src)
		if next.elements() == 0 {
			continue
		}
		next.at = elements
		elements += next.elements()
		p.extent = max(p.extent, next.end(p.src))
		p.append(next)
	}
	p.bytes = elements * p.dst
	return p
}

// append adds a piece. If both it and the last piece are single runs that touch,
// the last one is lengthened instead.
func (p *Program) append(next piece) {
	if n := len(p.pieces); n > 0 {
		last := &p.pieces[n-1]
		single := last.elements() == last.run && next.elements() == next.run
		if single && last.first+last.run*p.src == next.first {
			last.run += next.run
			return
		}
	}
	p.pieces = append(p.pieces, next)
}

// compileBox makes the piece of one box. Size is the number of its elements in an
// element of the row, and unit the distance from one to the next.
//
// It walks the dimensions from the innermost outwards. While all elements so far
// are adjacent, a dimension lengthens the run. After that a dimension is a repeat,
// which merges with the repeat inside it if the distances allow.
func compileBox(strides []int, box [][2]int, size, unit int) piece {
	p := piece{run: size, inner: loop{1, 0}, passes: 1}
	var loops []loop
	for d := len(strides) - 1; d >= 0; d-- {
		n, stride, last := box[d][1]-box[d][0], strides[d], len(loops)-1
		p.first += box[d][0] * stride
		switch {
		case n == 1:
		case last < 0 && p.run*unit == stride:
			p.run *= n
		case last >= 0 && loops[last].count*loops[last].stride == stride:
			loops[last].count *= n
		default:
			loops = append(loops, loop{n, stride})
		}
	}
	if len(loops) > 0 {
		p.inner, p.outer = loops[0], loops[1:]
	}
	for _, l := range p.outer {
		p.passes *= l.count
	}
	return p
}
