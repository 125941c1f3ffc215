package tfrecord

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/status"
)

// kind is the type of the values of a feature. Its number is the number of the field in tf.train.Feature.
type kind byte

const (
	nothing kind = iota
	bytesList
	floatList
	int64List
)

// String names the values, for messages.
func (k kind) String() string { return [...]string{"no values", "bytes", "floats", "integers"}[k] }

// value is a feature of a record. The list is a message of protobuf with its values.
type value struct {
	name []byte
	kind kind
	list []byte
}

// Wire types of protobuf.
const (
	varint = 0
	fixed8 = 1
	sized  = 2
	fixed4 = 5
)

// message is a message of protobuf that is being read.
type message struct {
	rest []byte
	bad  bool
}

// field is a field of a message.
type field struct {
	number uint64
	wire   byte
	data   []byte // unless the value is a varint
	value  uint64 // of a varint
}

// next returns the next field. ok is false at the end of the message, or if it is bad.
func (m *message) next() (f field, ok bool) {
	if len(m.rest) == 0 {
		return f, false
	}
	tag := m.varint()
	f.number, f.wire = tag>>3, byte(tag&7)
	switch f.wire {
	case varint:
		f.value = m.varint()
	case fixed8:
		f.data = m.take(8)
	case sized:
		f.data = m.take(m.varint())
	case fixed4:
		f.data = m.take(4)
	default:
		m.bad = true // groups, which tf.Example does not have
	}
	m.bad = m.bad || f.number == 0
	return f, !m.bad
}

func (m *message) varint() uint64 {
	n, used := binary.Uvarint(m.rest)
	if m.bad = m.bad || used <= 0; m.bad {
		return 0
	}
	m.rest = m.rest[used:]
	return n
}

func (m *message) take(n uint64) []byte {
	if m.bad = m.bad || n > uint64(len(m.rest)); m.bad {
		return nil
	}
	out := m.rest[:n:n]
	m.rest = m.rest[n:]
	return out
}

// values visits the features of a tf.Example. Fields that are not known are skipped.
func values(record []byte, visit func(v value) error) error {
	example := message{rest: record}
	for f, ok := example.next(); ok; f, ok = example.next() {
		if f.number == 2 && f.wire == sized {
			return status.New(status.Unsupported, "arrowio", "it is a tf.SequenceExample, and only tf.Example is read").
				WithHint("write the rows with their lists as Parquet or Arrow IPC")
		}
		if f.number != 1 || f.wire != sized {
			continue
		}
		features := message{rest: f.data}
		for f, ok := features.next(); ok; f, ok = features.next() {
			if f.number != 1 || f.wire != sized {
				continue
			}
			v, ok := entry(f.data)
			if !ok {
				return foreign()
			}
			if err := visit(v); err != nil {
				return err
			}
		}
		if features.bad {
			return foreign()
		}
	}
	if example.bad {
		return foreign()
	}
	return nil
}

// entry returns the name and the value of a feature.
func entry(data []byte) (v value, ok bool) {
	m := message{rest: data}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.wire != sized:
		case f.number == 1:
			v.name = f.data
		case f.number == 2:
			feature := message{rest: f.data}
			for f, ok := feature.next(); ok; f, ok = feature.next() {
				if f.wire == sized && f.number <= uint64(int64List) {
					m.bad = m.bad || v.kind != nothing
					v.kind, v.list = kind(f.number), f.data
				}
			}
			m.bad = m.bad || feature.bad
		}
	}
	return v, !m.bad && utf8.Valid(v.name)
}

func foreign() error {
	return status.New(status.Unsupported, "arrowio", "it is not a tf.Example").
		WithHint("write its values as tf.Example, Parquet or Arrow IPC with the program that reads it")
}

// each visits the values of a list. Packed numbers come together: floats in 4 bytes each, and integers as
// varints. Other integers come as a number. ok is false if the list is bad.
func (v *value) each(bytes func(b []byte), number func(n uint64)) (ok bool) {
	m := message{rest: v.list}
	for f, ok := m.next(); ok; f, ok = m.next() {
		switch {
		case f.number != 1:
		case v.kind == int64List && f.wire == varint:
			number(f.value)
		case v.kind == int64List && f.wire == sized:
			packed := message{rest: f.data}
			for len(packed.rest) > 0 && !packed.bad {
				if n := packed.varint(); !packed.bad {
					number(n)
				}
			}
			m.bad = m.bad || packed.bad
		case v.kind == floatList && (f.wire == fixed4 || f.wire == sized && len(f.data)%4 == 0), v.kind == bytesList && f.wire == sized:
			bytes(f.data)
		default:
			m.bad = true
		}
	}
	return !m.bad
}

// count returns the number of values.
func (v *value) count() (n int64, ok bool) {
	ok = v.each(func(b []byte) {
		if v.kind == floatList {
			n += int64(len(b) / 4)
		} else {
			n++
		}
	}, func(uint64) { n++ })
	return n, ok
}
