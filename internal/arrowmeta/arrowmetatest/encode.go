// Package arrowmetatest writes the metadata of Arrow IPC files and streams, valid or not, for
// tests.
package arrowmetatest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Table is a FlatBuffers table to encode: its values by their offset in the
// vtable, which is 4 for the first field, 6 for the second. A value is one of:
//
//   - an integer of fixed size;
//   - a string;
//   - a Table, a vector of tables ([]Table, Shared), or a vector of
//     structs, integers or references (Vec);
//   - a reference that leads anywhere (Offset).
type Table map[int]any

// Vec is a vector of Count elements, which Data encodes.
type Vec struct {
	Count uint32
	Data  []byte
}

// Shared is a vector of N references to one table T.
type Shared struct {
	N int
	T Table
}

// Offset is a reference with a given value, which may be wrong.
type Offset uint32

// Numbers returns a vector of structs, each of per int64 values.
func Numbers(per int, values ...int64) Vec {
	v := Vec{Count: uint32(len(values) / per)}
	for _, n := range values {
		v.Data = binary.LittleEndian.AppendUint64(v.Data, uint64(n))
	}
	return v
}

// Offsets returns a vector of references with given values, which may be wrong.
func Offsets(values ...uint32) Vec {
	v := Vec{Count: uint32(len(values))}
	for _, n := range values {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, n)
	}
	return v
}

// Flat encodes a table and its children as FlatBuffers, parents before children.
func Flat(root Table) []byte {
	b := make([]byte, 4)
	b = appendTable(b, 0, root)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// refer sets the reference at position at so that it leads to the end of b.
func refer(b []byte, at int) { binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at)) }

// appendTable appends a table, and sets the reference at position ref to it.
func appendTable(b []byte, ref int, t Table) []byte {
	slots := slices.Sorted(maps.Keys(t))
	vtable := make([]byte, 4)
	if len(slots) > 0 {
		vtable = make([]byte, slots[len(slots)-1]+2)
	}
	body := make([]byte, 4)
	refs := map[int]any{} // by slot: the values that follow the table
	for _, s := range slots {
		binary.LittleEndian.PutUint16(vtable[s:], uint16(len(body)))
		switch v := t[s].(type) {
		case string, Table, []Table, Vec, Shared:
			refs[s] = v
			body = append(body, 0, 0, 0, 0)
		default:
			body, _ = binary.Append(body, binary.LittleEndian, v)
		}
	}
	binary.LittleEndian.PutUint16(vtable, uint16(len(vtable)))
	binary.LittleEndian.PutUint16(vtable[2:], uint16(len(body)))
	binary.LittleEndian.PutUint32(body, uint32(len(vtable)))
	start := len(b) + len(vtable)
	b = append(b, vtable...)
	refer(b, ref)
	b = append(b, body...)
	for _, s := range slots {
		if v, ok := refs[s]; ok {
			b = appendRef(b, start+int(binary.LittleEndian.Uint16(vtable[s:])), v)
		}
	}
	return b
}

// appendRef appends a value, and sets the reference at position ref to it.
func appendRef(b []byte, ref int, value any) []byte {
	if t, ok := value.(Table); ok {
		return appendTable(b, ref, t)
	}
	refer(b, ref)
	switch v := value.(type) {
	case string:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		return append(append(b, v...), 0)
	case Vec:
		b = binary.LittleEndian.AppendUint32(b, v.Count)
		return append(b, v.Data...)
	case []Table:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		first := len(b)
		b = append(b, make([]byte, 4*len(v))...)
		for i, t := range v {
			b = appendTable(b, first+4*i, t)
		}
		return b
	case Shared:
		b = binary.LittleEndian.AppendUint32(b, uint32(v.N))
		first := len(b)
		b = appendTable(append(b, make([]byte, 4*v.N)...), first, v.T)
		to := first + int(binary.LittleEndian.Uint32(b[first:]))
		for at := first; at < first+4*v.N; at += 4 {
			binary.LittleEndian.PutUint32(b[at:], uint32(to-at))
		}
		return b
	}
	panic(fmt.Sprintf("no reference: %T", value))
}

// Field returns the table of a column. The numbers of the types are as in arrowmeta.Kind.
func Field(name string, kind uint8, parameters Table, children ...Table) Table {
	return Table{4: name, 8: kind, 10: parameters, 14: children}
}

// Message returns the table of a message.
func Message(kind uint8, header Table, body int64) Table {
	return Table{4: int16(4), 6: kind, 8: header, 10: body}
}

// SchemaOf returns the table of a schema.
func SchemaOf(columns ...Table) Table { return Table{6: columns} }

// BatchOf returns a record batch. A node is a length and a number of nulls; a buffer
// is an offset and a length.
func BatchOf(length int64, nodes, buffers Vec) Table {
	return Table{4: length, 6: nodes, 8: buffers}
}

// Framed returns a message: Arrow's prefix, the metadata, and a body of zeros.
func Framed(metadata []byte, body int) []byte {
	b := []byte{0xff, 0xff, 0xff, 0xff}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(metadata)))
	return append(append(b, metadata...), make([]byte, body)...)
}

// EndOfStream is the marker at the end of a stream.
var EndOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// StreamOf returns a stream: a schema, and record batches with bodies of body bytes.
func StreamOf(schema Table, body int, batches ...Table) []byte {
	b := Framed(Flat(Message(1, schema, 0)), 0)
	for _, r := range batches {
		b = append(b, Framed(Flat(Message(3, r, int64(body))), body)...)
	}
	return append(b, EndOfStream...)
}

// FileOf returns a file with the same content. If change is not nil, it may damage the
// footer.
func FileOf(schema Table, body int, change func(footer Table), batches ...Table) []byte {
	b := []byte("ARROW1\x00\x00")
	var blocks []int64
	for _, r := range batches {
		m := Framed(Flat(Message(3, r, int64(body))), body)
		blocks = append(blocks, int64(len(b)), int64(len(m)-body), int64(body))
		b = append(b, m...)
	}
	footer := Table{4: int16(4), 6: schema, 10: Numbers(3, blocks...)}
	if change != nil {
		change(footer)
	}
	f := Flat(footer)
	b = append(append(b, EndOfStream...), f...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f)))
	return append(b, "ARROW1"...)
}
