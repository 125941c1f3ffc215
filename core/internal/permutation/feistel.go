package permutation

import (
	"math"
	"math/bits"
	"sync"
)

const rounds = 10 // see the package comment

// feistel permutes the elements l·b + r of an a × b rectangle. An image at n or
// beyond passes through the network again, until an image is below n.
type feistel struct {
	n, a, b uint64
	keys    [rounds]uint64
	addends func() *addends // computed at the first call
}

// newFeistel makes a even. If a and b were odd, every round would be an even
// permutation of the rectangle. Their product would be even too, so no odd
// permutation could occur.
func newFeistel(n int64, key [2]uint64) *feistel {
	f := &feistel{n: uint64(n)}
	f.a = uint64(math.Ceil(math.Sqrt(float64(n))))
	f.a += f.a % 2
	f.b = (f.n + f.a - 1) / f.a
	for i := range f.keys {
		f.keys[i] = Hash(uint64(i), key[0], key[1])
	}
	f.addends = sync.OnceValue(f.computeAddends)
	return f
}

func (f *feistel) Len() int64 { return int64(f.n) }

func (f *feistel) At(position int64) int64 {
	check(position, 1, f.Len())
	return int64(f.walk(uint64(position)))
}

// walk passes x through the network until its image is below n.
func (f *feistel) walk(x uint64) uint64 {
	for {
		l, r := x/f.b, x%f.b
		for i := 0; i < rounds; i += 2 {
			l = add(l, addend(r, f.keys[i], f.a), f.a)
			r = add(r, addend(l, f.keys[i+1], f.b), f.b)
		}
		if x = l*f.b + r; x < f.n {
			return x
		}
	}
}

func (f *feistel) Position(image int64) int64 {
	check(image, 1, f.Len())
	for x := uint64(image); ; {
		l, r := x/f.b, x%f.b
		for i := rounds - 2; i >= 0; i -= 2 { // the rounds of walk, undone from the last to the first
			r = add(r, f.b-addend(l, f.keys[i+1], f.b), f.b)
			l = add(l, f.a-addend(r, f.keys[i], f.a), f.a)
		}
		if x = l*f.b + r; x < f.n {
			return int64(x)
		}
	}
}

// addend returns the number that a round adds to one half: a hash, below m, of the
// other half y.
func addend(y, key, m uint64) uint64 {
	h, _ := bits.Mul64(Mix(y^key), m)
	return h
}

// add returns x + y modulo m, for x and y below m.
func add(x, y, m uint64) uint64 {
	x += y - m
	return x + m&uint64(int64(x)>>63) // plus m if negative, without a jump that the processor cannot predict
}

func (f *feistel) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), f.Len())
	if f.n > maxTabulated {
		for i := range dst {
			dst[i] = int64(f.walk(uint64(position) + uint64(i)))
		}
		return
	}
	f.addends().fill(dst, uint64(position))
}
