package columns

import "encoding/binary"

// buffer is memory that grows. The first n bytes are in use.
type buffer struct {
	memory Memory
	bytes  []byte
	n      int
	failed *error // the first error of a buffer of the batch
}

// extend adds n bytes and returns them. After an error it returns nil.
func (b *buffer) extend(n int) []byte {
	if *b.failed != nil {
		return nil
	}
	if need := b.n + n; need > len(b.bytes) {
		size := need // exactly, the first time
		if b.bytes != nil {
			size = max(need, 2*len(b.bytes))
		}
		bytes, err := b.memory.Resize(b.bytes, max(size, 8))
		if err != nil {
			b.bytes, b.n, *b.failed = nil, 0, err
			return nil
		}
		b.bytes = bytes
	}
	b.n += n
	return b.bytes[b.n-n : b.n]
}

// add appends bytes.
func (b *buffer) add(bytes []byte) { copy(b.extend(len(bytes)), bytes) }

// addInt appends an offset.
func (b *buffer) addInt(value int64, wide bool) {
	if wide {
		if out := b.extend(8); out != nil {
			binary.LittleEndian.PutUint64(out, uint64(value))
		}
	} else if out := b.extend(4); out != nil {
		binary.LittleEndian.PutUint32(out, uint32(value))
	}
}

// used returns the bytes in use, nil if nothing was ever added.
func (b *buffer) used() []byte { return b.bytes[:b.n:b.n] }

// free frees the memory.
func (b *buffer) free() {
	if b.bytes != nil {
		b.memory.Free(b.bytes)
	}
}

// bits is a buffer of single bits, the first of a byte in its lowest bit.
type bits struct {
	buffer
	count int
}

// extend adds n bits of value 0, and returns the number of the first. If out of memory, ok
// is false.
func (b *bits) extend(n int) (first int, ok bool) {
	clear(b.buffer.extend((b.count+n+7)/8 - b.n))
	if *b.failed != nil {
		return 0, false
	}
	b.count += n
	return b.count - n, true
}

// ones adds n bits of value 1.
func (b *bits) ones(n int) {
	at, ok := b.extend(n)
	if !ok {
		return
	}
	for ; at < b.count && at&7 != 0; at++ {
		b.set(at)
	}
	for ; at+8 <= b.count; at += 8 {
		b.bytes[at>>3] = 0xFF
	}
	for ; at < b.count; at++ {
		b.set(at)
	}
}

func (b *bits) set(at int) { b.bytes[at>>3] |= 1 << (at & 7) }

// pack adds a bit for each byte: 1 unless the byte is 0.
func (b *bits) pack(from []byte) {
	at, ok := b.extend(len(from))
	if !ok {
		return
	}
	for i, v := range from {
		if v != 0 {
			b.set(at + i)
		}
	}
}

// validity is the bitmap of the entries of a level. It has no memory before the first
// null.
type validity struct {
	bits
	valid int // entries before the first null
	nulls int
}

// add adds n entries that are not null.
func (v *validity) add(n int) {
	if v.nulls == 0 {
		v.valid += n
	} else {
		v.ones(n)
	}
}

// addNull adds an entry that is null.
func (v *validity) addNull() {
	if v.nulls == 0 {
		v.ones(v.valid)
	}
	v.nulls++
	v.extend(1)
}

// addFrom adds an entry for each run of `each` values. It is null if all of them are. A nil list
// has no nulls.
func (v *validity) addFrom(nulls []bool, each, n int) {
	if nulls == nil {
		v.add(n)
		return
	}
	for ; len(nulls) > 0; nulls = nulls[each:] {
		if all(nulls[:each]) {
			v.addNull()
		} else {
			v.add(1)
		}
	}
}

func all(list []bool) bool {
	for _, b := range list {
		if !b {
			return false
		}
	}
	return true
}

func (v *validity) used() []byte {
	if v.nulls == 0 {
		return nil
	}
	return v.bits.used()
}
