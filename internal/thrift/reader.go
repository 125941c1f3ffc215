// Package thrift reads structs in Thrift's compact protocol ("Thrift compact protocol
// encoding", Apache Thrift). Parquet stores its metadata in it.
//
// The bytes are not trusted. A [Reader] keeps the first error, and after it reads only
// zeros and empty lists. It allocates no more than a constant times the number of its
// bytes, and does not recurse deeper than [MaxDepth].
//
//	r := thrift.New(data, "footer")
//	r.Struct(func(id int, kind thrift.Kind) {
//		switch id {
//		case 3:
//			rows = r.Int64(kind)
//		}
//	})
//	if err := r.Err(); err != nil { … }
package thrift

import (
	"encoding/binary"
	"fmt"
)

// Kind is the type of a value.
type Kind byte

// The types of the protocol. A boolean in a struct has its value in its type.
const (
	True   Kind = 1
	False  Kind = 2
	Byte   Kind = 3
	I16    Kind = 4
	I32    Kind = 5
	I64    Kind = 6
	Double Kind = 7
	Binary Kind = 8
	List   Kind = 9
	Set    Kind = 10
	Map    Kind = 11
	Struct Kind = 12
	UUID   Kind = 13
)

// MaxDepth bounds the nesting of structs, lists and maps. The metadata of Parquet have
// nine levels.
const MaxDepth = 32

// Reader reads one struct.
type Reader struct {
	b     []byte
	what  string
	pos   int
	depth int
	taken bool // the value of the current field was read
	err   error
}

// New returns a reader of a struct that b begins with. Errors call b what, such as
// "footer".
func New(b []byte, what string) *Reader { return &Reader{b: b, what: what} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Pos returns the number of bytes that were read.
func (r *Reader) Pos() int { return r.pos }

// Fail sets the error, unless there is one, and adds the position.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s (at byte %d of the %s)", fmt.Sprintf(format, args...), r.pos, r.what)
	}
}

// Struct calls visit for every field, up to the end of the struct. If visit does not read the
// value of the field, Struct skips it.
func (r *Reader) Struct(visit func(id int, kind Kind)) {
	if !r.enter() {
		return
	}
	id := 0
	for {
		head := r.u8()
		if head == 0 || r.err != nil {
			break
		}
		if step := int(head >> 4); step > 0 {
			id += step
		} else {
			id = int(int16(r.integer()))
		}
		kind := Kind(head & 15)
		r.taken = false
		if visit(id, kind); !r.taken {
			r.skip(kind, false)
		}
	}
	r.taken = true
	r.depth--
}

// Nested reads a field that is a struct, as Struct does.
func (r *Reader) Nested(kind Kind, visit func(id int, kind Kind)) {
	if r.want(kind, Struct) {
		r.Struct(visit)
	}
}

// Structs reads a list of at most limit structs, which errors call what.
func Structs[T any](r *Reader, kind Kind, limit int, what string, read func(r *Reader) T) (list []T) {
	if !r.want(kind, List) {
		return nil
	}
	element, n := r.list()
	if n > limit {
		r.Fail("more than %d %s", limit, what)
	}
	if n > 0 && r.want(element, Struct) {
		for i := 0; i < n && r.err == nil; i++ {
			list = append(list, read(r))
		}
	}
	return list
}

// Union reads a union: a struct with one field, which is a struct. It calls visit with the
// number of the field. If visit does not read the struct, Union skips it.
func (r *Reader) Union(kind Kind, visit func(id int)) {
	r.Nested(kind, func(id int, kind Kind) {
		if r.want(kind, Struct) {
			r.taken = false
			visit(id)
		}
	})
}

// Bool returns a boolean of a struct.
func (r *Reader) Bool(kind Kind) bool {
	return kind == True || !r.want(kind, False)
}

// Int8 reads a value of the type Byte.
func (r *Reader) Int8(kind Kind) int8 {
	if !r.want(kind, Byte) {
		return 0
	}
	return int8(r.u8())
}

// Int32 reads a value of the type I32.
func (r *Reader) Int32(kind Kind) int32 {
	if !r.want(kind, I32) {
		return 0
	}
	return int32(r.integer())
}

// Int64 reads a value of the type I64.
func (r *Reader) Int64(kind Kind) int64 {
	if !r.want(kind, I64) {
		return 0
	}
	return r.integer()
}

// String reads a value of the type Binary.
func (r *Reader) String(kind Kind) string {
	if !r.want(kind, Binary) {
		return ""
	}
	return string(r.bytes())
}

// want begins to read a value. It reports whether the value has the type that the format
// requires, and no error occurred before.
func (r *Reader) want(kind, want Kind) bool {
	r.taken = true
	if kind != want {
		r.Fail("a field has type %d instead of %d", kind, want)
	}
	return r.err == nil
}

// enter begins a struct, list or map inside of the current one.
func (r *Reader) enter() bool {
	if r.depth == MaxDepth {
		r.Fail("values are nested deeper than %d", MaxDepth)
	}
	r.depth++
	return r.err == nil
}

func (r *Reader) u8() byte {
	if r.err != nil || r.pos >= len(r.b) {
		r.Fail("the %s ends here", r.what)
		return 0
	}
	r.pos++
	return r.b[r.pos-1]
}

func (r *Reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.pos:])
	if n <= 0 {
		r.Fail("a number has no end")
		return 0
	}
	r.pos += n
	return v
}

// integer reads a number of any width in the zigzag form.
func (r *Reader) integer() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count checks that n elements fit into the rest of the bytes, because each of them has
// at least one byte.
func (r *Reader) count(n uint64) int {
	if n > uint64(len(r.b)-r.pos) {
		r.Fail("%d elements do not fit into the %s", n, r.what)
		return 0
	}
	return int(n)
}

// bytes reads a binary value. The result shares the reader's memory.
func (r *Reader) bytes() []byte {
	n := r.count(r.uvarint())
	if r.err != nil {
		return nil
	}
	r.pos += n
	return r.b[r.pos-n : r.pos]
}

// list reads the head of a list or set: the type and the number of elements.
func (r *Reader) list() (element Kind, n int) {
	head := r.u8()
	size := uint64(head >> 4)
	if size == 15 {
		size = r.uvarint()
	}
	return Kind(head & 15), r.count(size)
}

// skip skips a value. A boolean is a byte in a list. In a struct it has no bytes,
// because its type is its value.
func (r *Reader) skip(kind Kind, inList bool) {
	switch kind {
	case True, False:
		if inList {
			r.u8()
		}
	case Byte:
		r.u8()
	case I16, I32, I64:
		r.uvarint()
	case Double:
		r.advance(8)
	case UUID:
		r.advance(16)
	case Binary:
		r.bytes()
	case List, Set:
		element, n := r.list()
		r.skipMany(n, element)
	case Map:
		r.skipMap()
	case Struct:
		r.Struct(func(int, Kind) {})
	default:
		r.Fail("a value has the unknown type %d", kind)
	}
}

func (r *Reader) advance(n int) {
	if n > len(r.b)-r.pos {
		r.Fail("the %s ends here", r.what)
		return
	}
	r.pos += n
}

// skipMany skips n groups of elements. A group has one element of each kind: a map has
// groups of a key and a value.
func (r *Reader) skipMany(n int, kinds ...Kind) {
	if r.enter() {
		for i := 0; i < n && r.err == nil; i++ {
			for _, kind := range kinds {
				r.skip(kind, true)
			}
		}
	}
	r.depth--
}

func (r *Reader) skipMap() {
	n := r.count(r.uvarint())
	if n > 0 {
		kinds := r.u8()
		r.skipMany(n, Kind(kinds>>4), Kind(kinds&15))
	}
}
