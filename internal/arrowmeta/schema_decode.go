package arrowmeta

import (
	"errors"
	"fmt"
)

// Bounds on schemas. Both are far above the numbers in real schemas. They bound the
// memory and the recursion that a hostile schema can cause.
const (
	MaxDepth  = 64      // nesting of fields
	MaxFields = 1 << 18 // fields of a schema, children included
)

// lastFeature is the last member of the enumeration Feature: dictionaries that are replaced, and
// compressed record batches.
const lastFeature = 2

// schemaDecoder counts the fields of a schema while it builds them.
type schemaDecoder struct{ fields int }

// ReadSchema reads the message of a schema, which begins with its length, as a stream
// does.
func ReadSchema(message []byte) (Schema, error) {
	if len(message) < 8 {
		return Schema{}, errors.New("the message is cut short")
	}
	skip, n := prefix(message)
	if n <= 0 || n > int64(len(message)-skip) {
		return Schema{}, fmt.Errorf("a message of %d bytes, but only %d are there", n, len(message)-skip)
	}
	var fb flatbuf
	fb.reset(message[skip : skip+int(n)])
	m := decodeMessage(&fb)
	if m.kind != schemaMessage {
		fb.fail(0, "a %s instead of a schema", messageName(m.kind))
	}
	if fb.err != nil {
		return Schema{}, fb.err
	}
	s := decodeSchema(m.header)
	return s, fb.err
}

// decodeSchema reads the FlatBuffers table Schema.
func decodeSchema(t table) Schema {
	var d schemaDecoder
	t.known("Schema", 10)
	endianness := t.i16(4, 0)
	if endianness != 0 && endianness != 1 {
		t.f.refuse(t.pos, "endianness %d", endianness)
	}
	pos, n := t.vector(10, 8)
	for ; n > 0; n, pos = n-1, pos+8 {
		if feature := t.f.i64(pos); feature < 0 || feature > lastFeature {
			t.f.refuse(pos, "feature %d of the schema is not known here", feature)
		}
	}
	return Schema{
		BigEndian: endianness != 0,
		Fields:    d.children(t, 6, 1),
		Metadata:  metadata(t, 8),
	}
}

// children reads a vector of tables Field.
func (d *schemaDecoder) children(t table, slot, depth int) []Field {
	pos, n := t.vector(slot, 4)
	if n == 0 {
		return nil
	}
	d.fields += n
	switch {
	case depth > MaxDepth:
		t.f.refuse(pos, "fields nested more than %d deep", MaxDepth)
	case d.fields > MaxFields:
		t.f.refuse(pos, "more than %d fields", MaxFields)
	}
	if !t.f.charge(pos, 8*n) {
		return nil
	}
	fields := make([]Field, n)
	for i := range fields {
		if f := t.f.table(pos + 4*i); t.f.err == nil {
			d.field(&fields[i], f, depth)
		}
		if t.f.err != nil {
			return nil
		}
	}
	return fields
}

// field reads the table Field. A well-formed one takes at least 16 bytes.
func (d *schemaDecoder) field(f *Field, t table, depth int) {
	if !t.f.charge(t.pos, 16) {
		return
	}
	t.known("Field", 16)
	f.Name = t.text(4)
	f.Nullable = t.bool(6)
	f.Type.Kind = Kind(t.u8(8, 0))
	typ, ok := t.child(10)
	if !ok && f.Type.Kind.Known() {
		t.f.fail(t.pos, "field %q has no type", f.Name)
	}
	f.Type.parameters(typ)
	if dict, ok := t.child(12); ok {
		f.Dictionary = dictionary(dict)
	}
	f.Type.Children = d.children(t, 14, depth+1)
	f.Metadata = metadata(t, 16)
	if want := f.Type.Kind.Children(); t.f.err == nil && want >= 0 && len(f.Type.Children) != want {
		t.f.fail(t.pos, "field %q of type %v has %d children instead of %d", f.Name, f.Type.Kind, len(f.Type.Children), want)
	}
}

// Children returns the number of children that a kind must have, -1 for any.
func (k Kind) Children() int {
	switch k {
	case Struct, Union:
		return -1
	case List, LargeList, ListView, LargeListView, FixedSizeList, Map:
		return 1
	case RunEndEncoded:
		return 2
	}
	if k.Known() {
		return 0
	}
	return -1
}

// dictionary reads the table DictionaryEncoding. Indices are int32 by default.
func dictionary(t table) *Dictionary {
	t.known("DictionaryEncoding", 10)
	if kind := t.i16(10, 0); kind != 0 {
		t.f.refuse(t.pos, "dictionary kind %d is not known here", kind)
	}
	d := &Dictionary{ID: t.i64(4, 0), Index: Type{Kind: Int, BitWidth: 32, Signed: true}}
	if index, ok := t.child(6); ok {
		d.Index.parameters(index)
	}
	return d
}

// metadata reads a vector of tables KeyValue.
func metadata(t table, slot int) Metadata {
	pos, n := t.vector(slot, 4)
	if n == 0 || !t.f.charge(pos, 8*n) {
		return nil
	}
	m := make(Metadata, n)
	for i := range m {
		kv := t.f.table(pos + 4*i)
		m[i] = KeyValue{kv.text(4), kv.text(6)}
		if t.f.err != nil {
			return nil
		}
	}
	return m
}

// lastParameters has the last slot of each type's table, if it has any.
var lastParameters = [...]int{
	Int: 6, Float: 4, Decimal: 8, Date: 4, Time: 6, Timestamp: 6, Interval: 4, Union: 6, FixedSizeBinary: 4, FixedSizeList: 4, Map: 4,
	Duration: 4, LargeListView: 0,
}

// parameters reads the parameters of t.Kind, such as the width in bits. If a
// precision or a unit is unknown, the width or the unit stays zero. Such a column
// can still be listed and skipped.
func (t *Type) parameters(p table) {
	if t.Kind.Known() {
		p.known("of the type "+t.Kind.String(), max(lastParameters[t.Kind], 2))
	}
	switch t.Kind {
	case Bool:
		t.BitWidth = 1
	case Int:
		t.BitWidth, t.Signed = width(p, 4, 0), p.bool(6)
	case Float:
		t.BitWidth = pick(p.i16(4, 0), 16, 32, 64)
	case Decimal:
		t.Precision, t.Scale, t.BitWidth = p.i32(4, 0), p.i32(6, 0), width(p, 8, 128)
	case Date:
		unit := p.i16(4, 1)
		t.BitWidth, t.Unit = pick(unit, 32, 64), pick(unit, Day, Millisecond)
	case Time:
		t.Unit, t.BitWidth = timeUnit(p, 1), width(p, 6, 32)
	case Timestamp:
		t.Unit, t.BitWidth, t.TimeZone = timeUnit(p, 0), 64, p.text(6)
	case Duration:
		t.Unit, t.BitWidth = timeUnit(p, 1), 64
	case Interval:
		unit := p.i16(4, 0)
		t.BitWidth, t.Unit = pick(unit, 32, 64, 128), pick(unit, YearMonth, DayTime, MonthDayNano)
	case Union:
		mode := p.i16(4, 0)
		if mode != 0 && mode != 1 {
			p.f.refuse(p.pos, "mode %d of a union", mode)
		}
		t.Dense, t.TypeIDs = mode == 1, typeIDs(p)
	case FixedSizeBinary:
		t.ByteWidth = width(p, 4, 0)
	case FixedSizeList:
		t.ListSize = width(p, 4, 0)
	case Map:
		t.KeysSorted = p.bool(4)
	}
}

func timeUnit(p table, missing int) Unit {
	return pick(p.i16(4, missing), Second, Millisecond, Microsecond, Nanosecond)
}

// width reads a size, which must not be negative.
func width(p table, slot, missing int) int {
	n := p.i32(slot, missing)
	if n < 0 {
		p.f.fail(p.pos, "negative size %d in a type", n)
		return 0
	}
	return n
}

func typeIDs(p table) []int {
	pos, n := p.vector(6, 4)
	if n == 0 || !p.f.charge(pos, 4*n) {
		return nil
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = p.f.i32(pos + 4*i)
	}
	return ids
}

// pick returns the i-th value of an enumeration, and zero beyond its end.
func pick[T any](i int, values ...T) (v T) {
	if i >= 0 && i < len(values) {
		v = values[i]
	}
	return v
}
