package permutation

import (
	"math"
	"math/bits"
)

const (
	rounds = 10
	lanes  = 64 // positions that pass through a round together, for speed only
)

// feistel permutes the elements l·b + r of an a × b rectangle. An image at n or
// beyond passes through the network again, until an image is below n.
type feistel struct {
	n, a, b uint64
	keys    [rounds]uint64
	kernel  bool // use the kernel instead of plain Go
}

// newFeistel makes a even. If a and b were odd, every round would be an even
// permutation, and so would be their product.
func newFeistel(n int64, key [2]uint64) *feistel {
	f := &feistel{n: uint64(n), kernel: haveKernel()}
	f.a = uint64(math.Ceil(math.Sqrt(float64(n))))
	f.a += f.a % 2
	f.b = (f.n + f.a - 1) / f.a
	for i := range f.keys {
		f.keys[i] = Hash(uint64(i), key[0], key[1])
	}
	return f
}

func (f *feistel) Len() int64 { return int64(f.n) }

func (f *feistel) At(position int64) int64 {
	check(position, 1, f.Len())
	return int64(f.walk(uint64(position)))
}

// walk returns the first element below n of the cycle that starts at x.
func (f *feistel) walk(x uint64) uint64 {
	for {
		l, r := x/f.b, x%f.b
		for i := 0; i < rounds; i += 2 {
			l = add(l, r, f.keys[i], f.a)
			r = add(r, l, f.keys[i+1], f.b)
		}
		if x = l*f.b + r; x < f.n {
			return x
		}
	}
}

// add returns x plus a hash of y, modulo m. x must be below m.
func add(x, y, key, m uint64) uint64 {
	h, _ := bits.Mul64(Mix(y^key), m)
	x += h - m
	return x + m&uint64(int64(x)>>63) // plus m if negative, without a jump that the processor cannot predict
}

func (f *feistel) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), f.Len())
	for len(dst) >= lanes {
		f.fill((*[lanes]int64)(dst), uint64(position), lanes)
		dst, position = dst[lanes:], position+lanes
	}
	if len(dst) > 0 {
		var all [lanes]int64
		f.fill(&all, uint64(position), len(dst))
		copy(dst, all[:])
	}
}

// fill does what walk does for count positions at once. The rounds of different
// positions do not depend on each other, so the processor overlaps them. The
// other lanes must not be walked: they may lie outside the rectangle, where walk
// might not end.
func (f *feistel) fill(dst *[lanes]int64, position uint64, count int) {
	if !f.once(dst, position/f.b, position%f.b) {
		return
	}
	for j, x := range dst[:count] {
		if uint64(x) >= f.n {
			dst[j] = int64(f.walk(uint64(x)))
		}
	}
}

// once passes the elements from h·b + t on, one per lane, through the network
// once. It reports whether any image is at n or beyond.
func (f *feistel) once(dst *[lanes]int64, h, t uint64) (outside bool) {
	if f.kernel {
		return f.onceKernel(dst, h, t)
	}
	return f.oncePortable(dst, h, t)
}

func (f *feistel) oncePortable(dst *[lanes]int64, h, t uint64) (outside bool) {
	var l, r [lanes]uint64
	for j := range l {
		l[j], r[j] = h, t
		if t++; t == f.b {
			h, t = h+1, 0
		}
	}
	for i := 0; i < rounds; i += 2 {
		addAll(&l, &r, f.keys[i], f.a)
		addAll(&r, &l, f.keys[i+1], f.b)
	}
	for j := range dst {
		x := l[j]*f.b + r[j]
		dst[j] = int64(x)
		outside = outside || x >= f.n
	}
	return outside
}

func addAll(x, y *[lanes]uint64, key, m uint64) {
	for j := range x {
		x[j] = add(x[j], y[j], key, m)
	}
}
