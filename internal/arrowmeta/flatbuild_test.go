package arrowmeta_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// fields is a FlatBuffers table to be written: values by slot. A value is an
// integer of fixed size, a string, a table (fields), a vector of tables
// ([]fields), of structs or numbers (vec), or the raw number of an offset.
type fields map[int]any

// vec is a vector of numbers; count elements that data holds.
type vec struct {
	count uint32
	data  []byte
}

// shared is a vector of n references to one table.
type shared struct {
	n int
	t fields
}

// offset is a reference, which is written as it is.
type offset uint32

// numbers makes a vector whose elements are of per numbers each.
func numbers(per int, values ...int64) vec {
	v := vec{count: uint32(len(values) / per)}
	for _, n := range values {
		v.data = binary.LittleEndian.AppendUint64(v.data, uint64(n))
	}
	return v
}

// offsets makes a vector of raw references.
func offsets(values ...uint32) vec {
	v := vec{count: uint32(len(values))}
	for _, n := range values {
		v.data = binary.LittleEndian.AppendUint32(v.data, n)
	}
	return v
}

// flat encodes a table as a FlatBuffers message, parents before children.
func flat(root fields) []byte {
	b := make([]byte, 4)
	b = appendTable(b, 0, root)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// refer makes the reference at position at lead to the end of b.
func refer(b []byte, at int) { binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at)) }

func appendTable(b []byte, ref int, t fields) []byte {
	slots := slices.Sorted(maps.Keys(t))
	vtable := make([]byte, 4)
	if len(slots) > 0 {
		vtable = make([]byte, slots[len(slots)-1]+2)
	}
	body := make([]byte, 4)
	refs := map[int]any{} // slot to what is written behind the table
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

// Tables of the format, by their slots. The types' numbers are arrowmeta.Kind's.

func field(name string, kind uint8, parameters fields, children ...fields) fields {
	return fields{4: name, 8: kind, 10: parameters, 14: children}
}

func message(kind uint8, header fields, body int64) fields {
	return fields{4: int16(4), 6: kind, 8: header, 10: body}
}

func schemaOf(columns ...fields) fields { return fields{6: columns} }

// batchOf is a record batch: nodes of (length, nulls), buffers of (offset, length).
func batchOf(length int64, nodes, buffers vec) fields {
	return fields{4: length, 6: nodes, 8: buffers}
}

// framed adds the prefix before the metadata and a body of zeros behind them.
func framed(metadata []byte, body int) []byte {
	b := []byte{0xff, 0xff, 0xff, 0xff}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(metadata)))
	return append(append(b, metadata...), make([]byte, body)...)
}

var endOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// streamOf is a stream of a schema and record batches with bodies of that size.
func streamOf(schema fields, body int, batches ...fields) []byte {
	b := framed(flat(message(1, schema, 0)), 0)
	for _, r := range batches {
		b = append(b, framed(flat(message(3, r, int64(body))), body)...)
	}
	return append(b, endOfStream...)
}

// fileOf is a file with the same content. Change may damage its footer.
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
