package levels

// Bitmap marks which of some slots hold a value, from the lowest bit of the first byte
// on, as Arrow does. It is nil as long as all of them do.
type Bitmap []byte

// Get reports whether slot i holds a value.
func (b Bitmap) Get(i int64) bool { return b == nil || b[i>>3]>>(i&7)&1 == 1 }

// Set marks slot i if valid is true. The bitmap has a zero for the slot.
func (b Bitmap) Set(i int64, valid bool) {
	if valid {
		b[i>>3] |= 1 << (i & 7)
	}
}

// add sets n slots from slot `at` on, after which there are none.
func (b *Bitmap) add(at int64, valid bool, n int) {
	if *b == nil {
		if valid || n == 0 {
			return
		}
		b.start(at, n)
	}
	if valid {
		b.ones(at, n)
		return
	}
	for int64(len(*b))*8 < at+int64(n) {
		*b = append(*b, 0)
	}
}

// start makes a bitmap of `at` slots, all of which hold a value, with room for n more.
func (b *Bitmap) start(at int64, n int) {
	if *b == nil {
		*b = make(Bitmap, 0, (at+int64(n)+7)/8+64)
		b.ones(0, int(at))
	}
}

// ones sets n slots from slot `at` on to 1.
func (b *Bitmap) ones(at int64, n int) {
	if used := int(at & 7); used > 0 && n > 0 {
		first := min(n, 8-used)
		(*b)[at>>3] |= byte(1<<first-1) << used
		n -= first
	}
	for ; n >= 8; n -= 8 {
		*b = append(*b, 0xff)
	}
	if n > 0 {
		*b = append(*b, 1<<n-1)
	}
}

// pack sets n slots from slot `at` on, after which there are none, to the first bits of
// src. Some are zeros.
func (b *Bitmap) pack(at int64, src []byte, n int) {
	b.start(at, n)
	used := at & 7
	for ; n > 0; n -= 8 {
		bits := src[0]
		if n < 8 {
			bits &= 1<<n - 1
		}
		if used > 0 {
			(*b)[len(*b)-1] |= bits << used
		}
		if used == 0 {
			*b = append(*b, bits)
		} else if n > int(8-used) {
			*b = append(*b, bits>>(8-used))
		}
		src = src[1:]
	}
}
