package encoding

import "encoding/binary"

const (
	PlanesWidth = 8    // bits of a number in [Planes], at most
	PlanesCount = 1024 // with as many numbers, [Planes] takes no more
	LongRun     = 256  // times one number, which [Planes.Short] leaves to Next
	longPacked  = 512  // packed numbers, which it leaves too
)

// Planes holds some numbers of [Runs] in bit planes: plane k has bit k of each number. So an
// operation on words compares 64 numbers. The zero value holds none.
type Planes struct {
	Count  int // count of the numbers
	planes [PlanesWidth][(PlanesCount+longPacked)/64 + 1]uint64
}

// Reset drops the numbers.
func (p *Planes) Reset() {
	p.Count = 0
	for k := range p.planes {
		p.planes[k][0] = 0
	}
}

// Word returns bit k of 64 numbers from number i on. The bits of numbers that the planes do
// not hold are undefined.
func (p *Planes) Word(k, i int) uint64 {
	at, used := i>>6, i&63
	return p.planes[k][at]>>used | p.planes[k][at+1]<<(64-used)
}

// put sets bit k of up to 64 numbers, from number i on, to the bits of word. The higher
// bits of word are zeros. Later numbers must not have been put yet.
func (p *Planes) put(k, i int, word uint64) {
	at, used := i>>6, i&63
	p.planes[k][at] |= word << used
	p.planes[k][at+1] = word >> (64 - used)
}

// Add moves numbers of width bits from the beginning of a run to the planes: all of them, or
// as many as fill the planes.
func (p *Planes) Add(run *Run, width int) {
	n := min(run.Count, (PlanesCount-p.Count+7)&^7) // whole groups, except the last
	if run.Packed == nil {
		p.repeat(run.Value, width, n)
	} else {
		p.unpack(run.Packed, width, n)
		run.Packed = run.Packed[min(n/8*width, len(run.Packed)):]
	}
	run.Count -= n
}

// Short adds the next runs, as long as they are short, until the planes are full. It does
// what Next and Add do, and is faster. It leaves a damaged run to them, and the end of
// the sequence.
func (p *Planes) Short(r *Runs) {
	src := r.src
	for p.Count < PlanesCount && r.left > 0 && len(src) >= 8 {
		head, at := uint64(src[0]), 1
		if head >= 0x80 {
			if head, at = binary.Uvarint(src); at != 2 {
				break
			}
		}
		n, end := 0, 0
		if count := int(head >> 1); head&1 == 1 {
			n, end = min(8*count, r.left), at+count*r.width
			if n >= longPacked || len(src)-end < 8 {
				break
			}
			p.unpack(src[at:end], r.width, n)
		} else {
			n, end = min(count, r.left), at+1
			if n >= LongRun || src[at]>>r.width != 0 {
				break
			}
			p.repeat(uint32(src[at]), r.width, n)
		}
		src = src[end:]
		r.left -= n
	}
	r.src = src
}

// repeat adds n times the same number.
func (p *Planes) repeat(value uint32, width, n int) {
	for i := 0; i < n; i += 64 {
		for k := range width {
			p.put(k, p.Count+i, -uint64(value>>k&1)&ones(n-i))
		}
	}
	p.Count += n
}

// unpack adds n numbers that are packed in src.
func (p *Planes) unpack(src []byte, width, n int) {
	step, bytes := 8, width
	if width == 1 {
		step, bytes = 64, 8
	}
	for i := 0; i < n; i += step {
		word := load(src)
		for k := range width {
			bits := word
			if width > 1 {
				bits = folds[width].bits(word >> k)
			}
			p.put(k, p.Count+i, bits&ones(n-i))
		}
		src = src[min(bytes, len(src)):]
	}
	p.Count += n
}

// load returns the first 8 bytes of src. What is missing there is undefined.
func load(src []byte) (word uint64) {
	if cap(src) >= 8 {
		return binary.LittleEndian.Uint64(src[:8])
	}
	for i, b := range src {
		word |= uint64(b) << (8 * i)
	}
	return word
}

// ones returns a word with the lowest n bits set: all if n is 64 or more.
func ones(n int) uint64 { return uint64(1)<<n - 1 }

// fold moves every width-th bit of a word, 8 in all, to the lowest byte.
type fold struct {
	width int
	masks [3]uint64 // for 8 single bits, 4 pairs and 2 fours
}

// folds has an entry for each width.
var folds = newFolds()

func newFolds() (all [PlanesWidth + 1]fold) {
	for width := 1; width <= PlanesWidth; width++ {
		f := fold{width: width}
		for i := range 8 {
			for k := range f.masks {
				f.masks[k] |= 1 << (i>>k<<k*width + i&(1<<k-1))
			}
		}
		all[width] = f
	}
	return all
}

// bits returns the bits 0, width, 2*width and so on to 7*width.
func (f *fold) bits(word uint64) uint64 {
	step := f.width - 1
	word &= f.masks[0]
	word = (word | word>>step) & f.masks[1]
	word = (word | word>>(2*step)) & f.masks[2]
	return (word | word>>(4*step)) & 0xff
}
