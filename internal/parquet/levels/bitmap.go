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
		*b = make(Bitmap, 0, (at+int64(n)+7)/8+64)
		b.ones(0, int(at))
	}
	if valid {
		b.ones(at, n)
		return
	}
	for int64(len(*b))*8 < at+int64(n) {
		*b = append(*b, 0)
	}
}

// ones sets n slots from slot `at` on to 1.
func (b *Bitmap) ones(at int64, n int) {
	for ; n > 0 && at&7 != 0; n-- {
		(*b)[at>>3] |= 1 << (at & 7)
		at++
	}
	for ; n >= 8; n -= 8 {
		*b = append(*b, 0xff)
	}
	if n > 0 {
		*b = append(*b, 1<<n-1)
	}
}
