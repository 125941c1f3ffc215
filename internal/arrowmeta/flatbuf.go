package arrowmeta

import (
	"encoding/binary"
	"fmt"
)

// flatbuf reads tables of one FlatBuffers message. Every access is within the
// bytes. The first error is kept in err; after it all fields read as absent, so
// that decoders need not check each step.
//
// An offset to a nested object counts forward from its own position, and the sum
// cannot wrap around. So a nested table always lies behind its parent, and no
// cycle is possible.
type flatbuf struct {
	b      []byte
	err    error
	budget int // bytes of decoded objects still allowed; see charge
}

// sharing bounds the bytes of all decoded objects, as a multiple of the message.
// Several offsets may point at one object, so a hostile message could decode to far
// more bytes than it has. Known writers share at most strings.
const sharing = 4

func (f *flatbuf) reset(b []byte) { *f = flatbuf{b: b, budget: sharing * len(b)} }

func (f *flatbuf) fail(at int, format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%s (at byte %d of the metadata)", fmt.Sprintf(format, args...), at)
	}
}

// Unsupported is an error for data that follow a format, but are not read here.
type Unsupported string

// Error implements error.
func (u Unsupported) Error() string { return string(u) }

// refuse is fail for metadata that may be valid, but have a meaning that is not known here.
func (f *flatbuf) refuse(at int, format string, args ...any) {
	if f.err == nil {
		f.err = Unsupported(fmt.Sprintf("%s (at byte %d of the metadata)", fmt.Sprintf(format, args...), at))
	}
}

// charge subtracts an object of n encoded bytes, which a decoder is about to copy,
// from budget. It returns false if budget is used up or an error came before.
func (f *flatbuf) charge(at, n int) bool {
	f.budget -= n
	if f.budget < 0 {
		f.fail(at, "objects overlap")
	}
	return f.err == nil
}

func (f *flatbuf) u16(at int) int { return int(binary.LittleEndian.Uint16(f.b[at:])) }
func (f *flatbuf) i32(at int) int { return int(int32(binary.LittleEndian.Uint32(f.b[at:]))) }
func (f *flatbuf) i64(at int) int64 {
	return int64(binary.LittleEndian.Uint64(f.b[at:]))
}

// has reports whether there are n bytes at position at.
func (f *flatbuf) has(at, n int) bool { return at >= 0 && n >= 0 && at <= len(f.b)-n }

// target returns the position that the offset at position at points to.
func (f *flatbuf) target(at int) (int, bool) {
	if !f.has(at, 4) {
		f.fail(at, "offset outside the metadata")
		return 0, false
	}
	off := int64(binary.LittleEndian.Uint32(f.b[at:]))
	to := int64(at) + off
	if off == 0 || to > int64(len(f.b)-4) {
		f.fail(at, "offset %d does not lead forward into the metadata", int32(off))
		return 0, false
	}
	return int(to), true
}

// root returns the table that the message begins with.
func (f *flatbuf) root() table { return f.table(0) }

// table returns the table that the offset at position at points to.
func (f *flatbuf) table(at int) table {
	pos, ok := f.target(at)
	if !ok {
		return table{}
	}
	vtable := int64(pos) - int64(f.i32(pos))
	if vtable < 0 || vtable > int64(len(f.b)-4) {
		f.fail(pos, "table without a field list")
		return table{}
	}
	vt := int(vtable)
	slots, size := f.u16(vt), f.u16(vt+2)
	if slots < 4 || slots%2 != 0 || !f.has(vt, slots) || size < 4 || !f.has(pos, size) {
		f.fail(pos, "table with a broken field list")
		return table{}
	}
	return table{f, pos, size, vt, slots}
}

// table is one verified table. The zero table has no fields. A slot is the offset of
// a field in the vtable: 4 for the first field, 6 for the second.
type table struct {
	f     *flatbuf
	pos   int // position of the table in the message
	size  int // bytes of the table
	vt    int // position of the vtable, the list of the fields' offsets
	slots int // bytes of the vtable
}

// field returns the position of a field of n bytes, and false if it is absent.
func (t table) field(slot, n int) (int, bool) {
	if slot >= t.slots || t.f.err != nil {
		return 0, false
	}
	off := t.f.u16(t.vt + slot)
	if off == 0 {
		return 0, false
	}
	if off < 4 || off > t.size-n {
		t.f.fail(t.pos, "field outside its table")
		return 0, false
	}
	return t.pos + off, true
}

// known refuses a table with fields behind the last slot that is read here. Arrow adds fields that
// change what the other bytes mean: a reader that did not know the compression of record batches
// would deliver compressed bytes as values.
func (t table) known(name string, last int) {
	for slot := last + 2; slot < t.slots; slot += 2 {
		if t.f.u16(t.vt+slot) != 0 {
			t.f.refuse(t.pos, "field %d of the table %s is not known here", slot/2-1, name)
		}
	}
}

func (t table) bool(slot int) bool { return t.u8(slot, 0) != 0 }

func (t table) u8(slot int, missing uint8) uint8 {
	if at, ok := t.field(slot, 1); ok {
		return t.f.b[at]
	}
	return missing
}

func (t table) i16(slot int, missing int) int {
	if at, ok := t.field(slot, 2); ok {
		return int(int16(t.f.u16(at)))
	}
	return missing
}

func (t table) i32(slot int, missing int) int {
	if at, ok := t.field(slot, 4); ok {
		return t.f.i32(at)
	}
	return missing
}

func (t table) i64(slot int, missing int64) int64 {
	if at, ok := t.field(slot, 8); ok {
		return t.f.i64(at)
	}
	return missing
}

// child returns the table that a field refers to, and false if it is absent.
func (t table) child(slot int) (table, bool) {
	at, ok := t.field(slot, 4)
	if !ok {
		return table{}, false
	}
	c := t.f.table(at)
	return c, c.f != nil
}

// vector returns position and number of the elements, size bytes each, that a
// field refers to. An absent vector has no elements.
func (t table) vector(slot, size int) (pos, n int) {
	at, ok := t.field(slot, 4)
	if !ok {
		return 0, 0
	}
	if at, ok = t.f.target(at); !ok {
		return 0, 0
	}
	count := int64(binary.LittleEndian.Uint32(t.f.b[at:]))
	if count > int64(len(t.f.b)-at-4)/int64(size) {
		t.f.fail(at, "%d elements of %d bytes do not fit into the metadata", count, size)
		return 0, 0
	}
	return at + 4, int(count)
}

// text copies the string that a field refers to.
func (t table) text(slot int) string {
	pos, n := t.vector(slot, 1)
	if n == 0 || !t.f.charge(pos, n) {
		return ""
	}
	return string(t.f.b[pos : pos+n])
}
