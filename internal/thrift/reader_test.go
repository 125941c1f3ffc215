package thrift_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/thrift"
	"github.com/meshfeed/meshfeed/internal/thrift/thrifttest"
)

type message struct {
	yes, no bool
	i8      int8
	i32     int32
	i64     int64
	text    string
	nested  []message
	member  int
}

func read(r *thrift.Reader) (m message) {
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			m.yes = r.Bool(kind)
		case 2:
			m.no = r.Bool(kind)
		case 3:
			m.i8 = r.Int8(kind)
		case 4:
			m.i32 = r.Int32(kind)
		case 5:
			m.i64 = r.Int64(kind)
		case 6:
			m.text = r.String(kind)
		case 8:
			m.nested = thrift.Structs(r, kind, 20, "messages", read)
		case 9:
			r.Union(kind, func(id int) {
				m.member = id
			})
		}
	})
	return m
}

// parts is a struct with a field of every type.
func parts() thrifttest.Struct {
	return thrifttest.Struct{
		1: true, 2: false, 3: int8(-3), 4: int32(-1 << 31), 5: int64(1 << 62), 6: "text", 7: []int32{-1, 0, 1 << 30},
		8: slices.Repeat([]thrifttest.Struct{{4: int32(7)}}, 17), 9: thrifttest.Struct{5: thrifttest.Struct{}},
	}
}

func check(m message) error {
	switch {
	case !m.yes || m.no || m.i8 != -3 || m.i32 != -1<<31 || m.i64 != 1<<62 || m.text != "text" || m.member != 5:
		return fmt.Errorf("got %+v", m)
	case len(m.nested) != 17 || m.nested[16].i32 != 7:
		return fmt.Errorf("got %+v", m)
	}
	return nil
}

// TestSkipped reads a struct between fields that it does not know, of every type.
func TestSkipped(t *testing.T) {
	unknown := thrifttest.Struct{20: true, 21: int8(1), 22: int32(1), 23: int64(1), 24: 1.5, 25: "x", 26: []int32{1, 2}, 27: parts(), 300: []thrifttest.Struct{parts()}}
	maps.Copy(unknown, parts())
	data := unknown.Bytes()
	r := thrift.New(data, "message")
	if err := check(read(r)); err != nil || r.Err() != nil || r.Pos() != len(data) {
		t.Errorf("%v, %v, %d of %d bytes", err, r.Err(), r.Pos(), len(data))
	}
	// A map from bytes to booleans, a set of booleans, and a UUID.
	data = slices.Concat([]byte{0xab, 2, 0x31, 5, 1, 6, 2, 0x1a, 0x21, 1, 2, 0x1d}, make([]byte, 16), []byte{0})
	r = thrift.New(data, "message")
	if r.Struct(func(int, thrift.Kind) {}); r.Err() != nil || r.Pos() != len(data) {
		t.Errorf("%v, %d of %d bytes", r.Err(), r.Pos(), len(data))
	}
}

// TestCut reads every part of a struct from its begin.
func TestCut(t *testing.T) {
	data := parts().Bytes()
	for n := range data {
		r := thrift.New(data[:n], "message")
		if read(r); r.Err() == nil {
			t.Fatalf("%d of %d bytes were enough", n, len(data))
		}
	}
}

func TestRefused(t *testing.T) {
	deep := thrifttest.Struct{}
	for range thrift.MaxDepth {
		deep = thrifttest.Struct{30: deep}
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "the message ends here (at byte 0 of the message)"},
		{thrifttest.Struct{4: int64(1)}.Bytes(), "a field has type 6 instead of 5 (at byte 1 of the message)"},
		{thrifttest.Struct{1: int32(1)}.Bytes(), "a field has type 5 instead of 2 (at byte 1 of the message)"},
		{thrifttest.Struct{8: []int32{1}}.Bytes(), "a field has type 5 instead of 12 (at byte 2 of the message)"},
		{thrifttest.Struct{8: make([]thrifttest.Struct, 21)}.Bytes(), "more than 20 messages (at byte 3 of the message)"},
		{deep.Bytes(), "values are nested deeper than 32"},
		{[]byte{0x68, 0xff, 0xff, 0xff, 0xff, 0x0f}, "4294967295 elements do not fit into the message (at byte 6 of the message)"},
		{slices.Concat([]byte{0x16}, slices.Repeat([]byte{0xff}, 12)), "a field has type 6 instead of 2"},
		{slices.Concat([]byte{0x56}, slices.Repeat([]byte{0xff}, 12)), "a number has no end (at byte 1 of the message)"},
		{[]byte{0x1f, 0}, "a field has type 15 instead of 2"},
		{[]byte{0xff, 0}, "a value has the unknown type 15 (at byte 1 of the message)"},
	} {
		r := thrift.New(c.data, "message")
		if read(r); r.Err() == nil || !strings.HasPrefix(r.Err().Error(), c.want) {
			t.Errorf("%x: %v, want %s", c.data, r.Err(), c.want)
		}
	}
}

// FuzzReader: any bytes are read or refused, in memory that is bounded by their number.
func FuzzReader(f *testing.F) {
	f.Add(parts().Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		r := thrift.New(data, "message")
		m := read(r)
		if r.Err() == nil && r.Pos() > len(data) {
			t.Errorf("%d of %d bytes were read", r.Pos(), len(data))
		}
		if len(m.nested) > len(data) {
			t.Errorf("%d bytes have %d elements", len(data), len(m.nested))
		}
	})
}
