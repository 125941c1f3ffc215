package arrowmeta_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// fields is a FlatBuffers table to encode: its values by their offset in the
// vtable, which is 4 for the first field, 6 for the second. A value is one of:
//
//   - an integer of fixed size;
//   - a string;
//   - a table (fields), a vector of tables ([]fields, shared), or a vector of
//     structs, integers or references (vec);
//   - a reference that leads anywhere (offset).
type fields map[int]any

// vec is a vector of count elements, which data encodes.
type vec struct {
	count uint32
	data  []byte
}

// shared is a vector of n references to one table t.
type shared struct {
	n int
	t fields
}

// offset is a reference with a given value, which may be wrong.
type offset uint32

// numbers returns a vector of structs, each of per int64 values.
func numbers(per int, values ...int64) vec {
	v := vec{count: uint32(len(values) / per)}
	for _, n := range values {
		v.data = binary.LittleEndian.AppendUint64(v.data, uint64(n))
	}
	return v
}

// offsets returns a vector of references with given values, which may be wrong.
func offsets(values ...uint32) vec {
	v := vec{count: uint32(len(values))}
	for _, n := range values {
		v.data = binary.LittleEndian.AppendUint32(v.data, n)
	}
	return v
}

// flat encodes a table and its children as FlatBuffers, parents before children.
func flat(root fields) []byte {
	b := make([]byte, 4)
	b = appendTable(b, 0, root)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// refer sets the reference at position at so that it leads to the end of b.
func refer(b []byte, at int) { binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at)) }

// appendTable appends a table, to which the reference at position ref then leads.
func appendTable(b []byte, ref int, t fields) []byte {
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
		case string, fields, []fields, vec, shared:
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

// appendRef appends a value, to which the reference at position ref then leads.
func appendRef(b []byte, ref int, value any) []byte {
	if t, ok := value.(fields); ok {
		return appendTable(b, ref, t)
	}
	refer(b, ref)
	switch v := value.(type) {
	case string:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		return append(append(b, v...), 0)
	case vec:
		b = binary.LittleEndian.AppendUint32(b, v.count)
		return append(b, v.data...)
	case []fields:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		first := len(b)
		b = append(b, make([]byte, 4*len(v))...)
		for i, t := range v {
			b = appendTable(b, first+4*i, t)
		}
		return b
	case shared:
		b = binary.LittleEndian.AppendUint32(b, uint32(v.n))
		first := len(b)
		b = appendTable(append(b, make([]byte, 4*v.n)...), first, v.t)
		to := first + int(binary.LittleEndian.Uint32(b[first:]))
		for at := first; at < first+4*v.n; at += 4 {
			binary.LittleEndian.PutUint32(b[at:], uint32(to-at))
		}
		return b
	}
	panic(fmt.Sprintf("no reference: %T", value))
}

// The functions below build the tables of Arrow's metadata. The numbers of the types
// are those of arrowmeta.Kind.

func field(name string, kind uint8, parameters fields, children ...fields) fields {
	return fields{4: name, 8: kind, 10: parameters, 14: children}
}

func message(kind uint8, header fields, body int64) fields {
	return fields{4: int16(4), 6: kind, 8: header, 10: body}
}

func schemaOf(columns ...fields) fields { return fields{6: columns} }

// batchOf returns a record batch. A node is a length and a number of nulls; a buffer
// is an offset and a length.
func batchOf(length int64, nodes, buffers vec) fields {
	return fields{4: length, 6: nodes, 8: buffers}
}

// framed returns a message: Arrow's prefix, the metadata, and a body of zeros.
func framed(metadata []byte, body int) []byte {
	b := []byte{0xff, 0xff, 0xff, 0xff}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(metadata)))
	return append(append(b, metadata...), make([]byte, body)...)
}

var endOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// streamOf returns a stream: a schema, and record batches with bodies of body bytes.
func streamOf(schema fields, body int, batches ...fields) []byte {
	b := framed(flat(message(1, schema, 0)), 0)
	for _, r := range batches {
		b = append(b, framed(flat(message(3, r, int64(body))), body)...)
	}
	return append(b, endOfStream...)
}

// fileOf returns a file with the same content. If change is not nil, it may damage the
// footer.
func fileOf(schema fields, body int, change func(footer fields), batches ...fields) []byte {
	b := []byte("ARROW1\x00\x00")
	var blocks []int64
	for _, r := range batches {
		m := framed(flat(message(3, r, int64(body))), body)
		blocks = append(blocks, int64(len(b)), int64(len(m)-body), int64(body))
		b = append(b, m...)
	}
	footer := fields{4: int16(4), 6: schema, 10: numbers(3, blocks...)}
	if change != nil {
		change(footer)
	}
	f := flat(footer)
	b = append(append(b, endOfStream...), f...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f)))
	return append(b, "ARROW1"...)
}
