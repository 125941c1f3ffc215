package main

import (
	"encoding/binary"
	"slices"
)

const magic = "\x00asm\x01\x00\x00\x00"

// The sections of a module, by their numbers.
const (
	types     = 1
	imports   = 2
	functions = 3
	start     = 8
	elements  = 9
	code      = 10
	data      = 11
)

// section is one part of a module. The bodies of most are lists, which begin
// with their length.
type section struct {
	number byte
	body   []byte
}

type module []section

func split(text []byte) (m module) {
	r := reader(text[len(magic):])
	for len(r) > 0 {
		number := r.take(1)[0]
		m = append(m, section{number, r.take(r.uvarint())})
	}
	return m
}

func (m module) join() []byte {
	text := []byte(magic)
	for _, s := range m {
		text = append(append(text, s.number), uvarint(len(s.body))...)
		text = append(text, s.body...)
	}
	return text
}

func (m module) find(number byte) *section {
	i := slices.IndexFunc(m, func(s section) bool { return s.number == number })
	return &m[i]
}

// length gives the length of a section's list.
func (s *section) length() int {
	r := reader(s.body)
	return r.uvarint()
}

// push appends an element to a section's list.
func (s *section) push(element []byte) {
	r := reader(s.body)
	n := r.uvarint()
	s.body = slices.Concat(uvarint(n+1), r, element)
}

// startWith inserts the section that names the function to begin with.
func (m module) startWith(function int) module {
	i := slices.IndexFunc(m, func(s section) bool { return s.number == elements })
	return slices.Insert(m, i, section{start, uvarint(function)})
}

// segment is a part of the memory as the module begins.
type segment struct {
	at    int
	bytes []byte
}

func (s *section) segments() []segment {
	r := reader(s.body)
	list := make([]segment, r.uvarint())
	for i := range list {
		r.take(2) // of memory 0; a constant
		list[i].at = r.varint()
		r.take(1) // end of what computes the place
		list[i].bytes = r.take(r.uvarint())
	}
	return list
}

func (s *section) setSegments(list []segment) {
	s.body = uvarint(len(list))
	for _, x := range list {
		s.body = append(append(s.body, "\x00\x41"...), varint(x.at)...)
		s.body = append(append(s.body, '\x0b'), uvarint(len(x.bytes))...)
		s.body = append(s.body, x.bytes...)
	}
}

// reader takes from the front of what is left.
type reader []byte

func (r *reader) take(n int) []byte {
	b := (*r)[:n:n]
	*r = (*r)[n:]
	return b
}

func (r *reader) uvarint() int {
	v, n := binary.Uvarint(*r)
	r.take(n)
	return int(v)
}

// varint reads a number that has a sign.
func (r *reader) varint() int {
	for v, shift := 0, 0; ; {
		b := int(r.take(1)[0])
		v |= b & 127 << shift
		if shift += 7; b < 128 {
			return v - v<<1&(1<<shift)
		}
	}
}

func uvarint(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// varint writes a number from 0 that is read with a sign.
func varint(n int) (b []byte) {
	for ; n > 63; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}
