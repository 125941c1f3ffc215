// Package thrifttest writes structs in Thrift's compact protocol, for tests.
package thrifttest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Struct holds the fields of a struct by their numbers. A value is a bool, int8, int32,
// int64, float64, string, Struct, []Struct or []int32.
type Struct map[int]any

// Bytes encodes the struct.
func (s Struct) Bytes() []byte {
	var out []byte
	last := 0
	for _, id := range slices.Sorted(maps.Keys(s)) {
		kind, value := encode(s[id])
		if step := id - last; step < 16 {
			out = append(out, byte(step)<<4|kind)
		} else {
			out = binary.AppendVarint(append(out, kind), int64(id))
		}
		out, last = append(out, value...), id
	}
	return append(out, 0)
}

// encode returns the type and the bytes of a value.
func encode(value any) (kind byte, bytes []byte) {
	switch v := value.(type) {
	case bool:
		if v {
			return 1, nil
		}
		return 2, nil
	case int8:
		return 3, []byte{byte(v)}
	case int32:
		return 5, binary.AppendVarint(nil, int64(v))
	case int64:
		return 6, binary.AppendVarint(nil, v)
	case float64:
		return 7, make([]byte, 8)
	case string:
		return 8, append(binary.AppendUvarint(nil, uint64(len(v))), v...)
	case Struct:
		return 12, v.Bytes()
	case []Struct:
		out := list(len(v), 12)
		for _, s := range v {
			out = append(out, s.Bytes()...)
		}
		return 9, out
	case []int32:
		out := list(len(v), 5)
		for _, n := range v {
			out = binary.AppendVarint(out, int64(n))
		}
		return 9, out
	}
	panic(fmt.Sprintf("thrifttest: a value of type %T", value))
}

// list encodes the head of a list.
func list(n int, element byte) []byte {
	if n < 15 {
		return []byte{byte(n)<<4 | element}
	}
	return binary.AppendUvarint([]byte{15<<4 | element}, uint64(n))
}
