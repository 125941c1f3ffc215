package arrowmeta

import (
	"encoding/binary"
	"fmt"
)

// The types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxThriftDepth bounds the nesting of structs, lists and maps. The metadata of
// Parquet have nine levels.
const maxThriftDepth = 32

// thrift reads a struct in Thrift's compact protocol. Like flatbuf, it stores the
// first error in err. After that it reads only zeros and empty lists.
type thrift struct {
	b     []byte
	pos   int
	depth int
	err   error
}

func (t *thrift) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("%s (at byte %d of the footer)", fmt.Sprintf(format, args...), t.pos)
	}
}

func (t *thrift) u8() byte {
	if t.err != nil || t.pos >= len(t.b) {
		t.fail("the footer ends here")
		return 0
	}
	t.pos++
	return t.b[t.pos-1]
}

func (t *thrift) uvarint() uint64 {
	if t.err != nil {
		return 0
	}
	v, n := binary.Uvarint(t.b[t.pos:])
	if n <= 0 {
		t.fail("a number has no end")
		return 0
	}
	t.pos += n
	return v
}

// integer reads a number of any width in the zigzag form.
func (t *thrift) integer() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count checks that n elements fit into the rest of the footer, because each of
// them has at least one byte.
func (t *thrift) count(n uint64) int {
	if n > uint64(len(t.b)-t.pos) {
		t.fail("%d elements do not fit into the footer", n)
		return 0
	}
	return int(n)
}

// bytes reads a binary value. The result shares the footer's memory.
func (t *thrift) bytes() []byte {
	n := t.count(t.uvarint())
	if t.err != nil {
		return nil
	}
	t.pos += n
	return t.b[t.pos-n : t.pos]
}

// list reads the head of a list or set: the type and the number of elements.
func (t *thrift) list() (kind byte, n int) {
	head := t.u8()
	size := uint64(head >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	return head & 15, t.count(size)
}

// structure calls visit for every field, up to the end of the struct. visit
// must read the value of a field or skip it.
func (t *thrift) structure(visit func(id int, kind byte)) {
	if !t.enter() {
		return
	}
	id := 0
	for {
		head := t.u8()
		if head == 0 || t.err != nil {
			break
		}
		if step := int(head >> 4); step > 0 {
			id += step
		} else {
			id = int(int16(t.integer()))
		}
		visit(id, head&15)
	}
	t.depth--
}

// structs reads a list of at most MaxFields structs, which errors call what.
func structs[T any](t *thrift, what string, read func(t *thrift) T) (list []T) {
	kind, n := t.list()
	if n > MaxFields {
		t.fail("more than %d %s", MaxFields, what)
	}
	if n > 0 && t.want(kind, thriftStruct) {
		for i := 0; i < n && t.err == nil; i++ {
			list = append(list, read(t))
		}
	}
	return list
}

// enter begins a struct, list or map inside of the current one.
func (t *thrift) enter() bool {
	if t.depth == maxThriftDepth {
		t.fail("values are nested deeper than %d", maxThriftDepth)
	}
	t.depth++
	return t.err == nil
}

// want reports whether a field has the type that the format requires, and no error
// occurred before.
func (t *thrift) want(kind, want byte) bool {
	if kind != want {
		t.fail("a field has type %d instead of %d", kind, want)
	}
	return t.err == nil
}

// skip skips a value. A boolean is a byte in a list. In a struct it has no bytes,
// because its type is its value.
func (t *thrift) skip(kind byte, inList bool) {
	switch kind {
	case thriftTrue, thriftFalse:
		if inList {
			t.u8()
		}
	case thriftByte:
		t.u8()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.advance(8)
	case thriftUUID:
		t.advance(16)
	case thriftBinary:
		t.bytes()
	case thriftList, thriftSet:
		element, n := t.list()
		t.skipMany(n, element)
	case thriftMap:
		t.skipMap()
	case thriftStruct:
		t.structure(func(_ int, kind byte) { t.skip(kind, false) })
	default:
		t.fail("a value has the unknown type %d", kind)
	}
}

func (t *thrift) advance(n int) {
	if n > len(t.b)-t.pos {
		t.fail("the footer ends here")
		return
	}
	t.pos += n
}

// skipMany skips n groups of elements. A group has one element of each kind: a map
// has groups of a key and a value.
func (t *thrift) skipMany(n int, kinds ...byte) {
	if t.enter() {
		for i := 0; i < n && t.err == nil; i++ {
			for _, kind := range kinds {
				t.skip(kind, true)
			}
		}
	}
	t.depth--
}

func (t *thrift) skipMap() {
	n := t.count(t.uvarint())
	if n > 0 {
		kinds := t.u8()
		t.skipMany(n, kinds>>4, kinds&15)
	}
}
