package cstream

/*
#include "cstream.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Bounds on a schema.
const (
	maxDepth    = 64
	maxChildren = 1 << 16
	maxText     = 16 << 20 // bytes of one key or value of metadata
)

// schemaOf reads the schema of a stream.
func schemaOf(c *C.struct_ArrowSchema) (*arrowmeta.Schema, error) {
	top, err := fieldOf(c, 0)
	if err != nil {
		return nil, err
	}
	if top.Type.Kind != arrowmeta.Struct || top.Dictionary != nil {
		return nil, fmt.Errorf("the stream holds arrays of %s, not record batches", top.TypeString())
	}
	return &arrowmeta.Schema{Fields: top.Type.Children, Metadata: top.Metadata}, nil
}

// fieldOf reads a field and its children.
func fieldOf(c *C.struct_ArrowSchema, depth int) (arrowmeta.Field, error) {
	if c == nil || c.release == nil || c.format == nil {
		return arrowmeta.Field{}, fmt.Errorf("the schema has a field without a format")
	}
	f := arrowmeta.Field{Name: text(c.name), Nullable: c.flags&2 != 0, Metadata: metadataOf(c.metadata)}
	if depth > maxDepth || c.n_children < 0 || c.n_children > maxChildren {
		return f, fmt.Errorf("field %q is nested more than %d deep or has %d children", f.Name, maxDepth, c.n_children)
	}
	var err error
	if f.Type, err = typeOf(text(c.format)); err != nil {
		return f, fmt.Errorf("field %q: %w", f.Name, err)
	}
	for _, child := range unsafe.Slice(c.children, int(c.n_children)) {
		inner, err := fieldOf(child, depth+1)
		if err != nil {
			return f, err
		}
		f.Type.Children = append(f.Type.Children, inner)
	}
	if want := f.Type.Kind.Children(); want >= 0 && len(f.Type.Children) != want {
		return f, fmt.Errorf("field %q of type %v has %d children instead of %d", f.Name, f.Type.Kind, len(f.Type.Children), want)
	}
	if c.dictionary != nil {
		values, err := fieldOf(c.dictionary, depth+1)
		if err != nil {
			return f, err
		}
		f.Dictionary = &arrowmeta.Dictionary{Index: f.Type}
		f.Type = values.Type
	}
	return f, nil
}

func text(c *C.char) string {
	if c == nil {
		return ""
	}
	return C.GoString(c)
}

// metadataOf reads pairs of a key and a value: first the number of pairs, then the
// length and the bytes of each text. All numbers are native 32-bit integers.
func metadataOf(c *C.char) arrowmeta.Metadata {
	if c == nil {
		return nil
	}
	at := unsafe.Pointer(c)
	number := func() int {
		n := int(int32(binary.NativeEndian.Uint32(unsafe.Slice((*byte)(at), 4))))
		at = unsafe.Add(at, 4)
		return n
	}
	var m arrowmeta.Metadata
	for range min(number(), maxChildren) {
		var pair [2]string
		for i := range pair {
			n := number()
			if n < 0 || n > maxText {
				return m
			}
			pair[i] = string(unsafe.Slice((*byte)(at), n))
			at = unsafe.Add(at, n)
		}
		m = append(m, arrowmeta.KeyValue{Key: pair[0], Value: pair[1]})
	}
	return m
}

// plain lists the format strings without parameters, as the Arrow C data interface
// defines them.
var plain = map[string]arrowmeta.Type{
	"n": {Kind: arrowmeta.Null},
	"b": {Kind: arrowmeta.Bool, BitWidth: 1},
	"c": {Kind: arrowmeta.Int, BitWidth: 8, Signed: true}, "C": {Kind: arrowmeta.Int, BitWidth: 8},
	"s": {Kind: arrowmeta.Int, BitWidth: 16, Signed: true}, "S": {Kind: arrowmeta.Int, BitWidth: 16},
	"i": {Kind: arrowmeta.Int, BitWidth: 32, Signed: true}, "I": {Kind: arrowmeta.Int, BitWidth: 32},
	"l": {Kind: arrowmeta.Int, BitWidth: 64, Signed: true}, "L": {Kind: arrowmeta.Int, BitWidth: 64},
	"e": {Kind: arrowmeta.Float, BitWidth: 16}, "f": {Kind: arrowmeta.Float, BitWidth: 32}, "g": {Kind: arrowmeta.Float, BitWidth: 64},
	"z": {Kind: arrowmeta.Binary}, "Z": {Kind: arrowmeta.LargeBinary}, "vz": {Kind: arrowmeta.BinaryView},
	"u": {Kind: arrowmeta.String}, "U": {Kind: arrowmeta.LargeString}, "vu": {Kind: arrowmeta.StringView},
	"tdD": {Kind: arrowmeta.Date, BitWidth: 32, Unit: arrowmeta.Day}, "tdm": {Kind: arrowmeta.Date, BitWidth: 64, Unit: arrowmeta.Millisecond},
	"tts": {Kind: arrowmeta.Time, BitWidth: 32, Unit: arrowmeta.Second}, "ttm": {Kind: arrowmeta.Time, BitWidth: 32, Unit: arrowmeta.Millisecond},
	"ttu": {Kind: arrowmeta.Time, BitWidth: 64, Unit: arrowmeta.Microsecond}, "ttn": {Kind: arrowmeta.Time, BitWidth: 64, Unit: arrowmeta.Nanosecond},
	"tDs": {Kind: arrowmeta.Duration, BitWidth: 64, Unit: arrowmeta.Second}, "tDm": {Kind: arrowmeta.Duration, BitWidth: 64, Unit: arrowmeta.Millisecond},
	"tDu": {Kind: arrowmeta.Duration, BitWidth: 64, Unit: arrowmeta.Microsecond}, "tDn": {Kind: arrowmeta.Duration, BitWidth: 64, Unit: arrowmeta.Nanosecond},
	"tiM": {Kind: arrowmeta.Interval, BitWidth: 32, Unit: arrowmeta.YearMonth},
	"tiD": {Kind: arrowmeta.Interval, BitWidth: 64, Unit: arrowmeta.DayTime}, "tin": {Kind: arrowmeta.Interval, BitWidth: 128, Unit: arrowmeta.MonthDayNano},
	"+l": {Kind: arrowmeta.List}, "+L": {Kind: arrowmeta.LargeList}, "+vl": {Kind: arrowmeta.ListView}, "+vL": {Kind: arrowmeta.LargeListView},
	"+s": {Kind: arrowmeta.Struct}, "+m": {Kind: arrowmeta.Map}, "+r": {Kind: arrowmeta.RunEndEncoded},
}

var timestamps = map[string]arrowmeta.Unit{
	"tss": arrowmeta.Second, "tsm": arrowmeta.Millisecond, "tsu": arrowmeta.Microsecond, "tsn": arrowmeta.Nanosecond,
}

// typeOf reads a format string. A string that Arrow does not define becomes an
// unknown type, so that the other columns can still be used.
func typeOf(format string) (arrowmeta.Type, error) {
	if t, ok := plain[format]; ok {
		return t, nil
	}
	name, parameter, _ := strings.Cut(format, ":")
	if unit, ok := timestamps[name]; ok {
		return arrowmeta.Type{Kind: arrowmeta.Timestamp, BitWidth: 64, Unit: unit, TimeZone: parameter}, nil
	}
	switch name {
	case "w", "+w":
		n, err := strconv.ParseInt(parameter, 10, 32)
		if err != nil || n < 0 {
			return arrowmeta.Type{}, fmt.Errorf("format %q does not say a size", format)
		}
		if name == "w" {
			return arrowmeta.Type{Kind: arrowmeta.FixedSizeBinary, ByteWidth: int(n)}, nil
		}
		return arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: int(n)}, nil
	case "d":
		return decimalOf(parameter), nil
	case "+ud", "+us":
		return arrowmeta.Type{Kind: arrowmeta.Union, Dense: name == "+ud"}, nil
	}
	return arrowmeta.Type{Kind: arrowmeta.Unknown, Name: format}, nil
}

// decimalOf reads "precision,scale[,bits]". Arrays have no decimal type, so the
// result is used only in messages. Therefore invalid numbers may become zero.
func decimalOf(parameter string) arrowmeta.Type {
	numbers := [3]int{0, 0, 128}
	for i, s := range strings.SplitN(parameter, ",", 3) {
		numbers[i], _ = strconv.Atoi(s)
	}
	return arrowmeta.Type{Kind: arrowmeta.Decimal, Precision: numbers[0], Scale: numbers[1], BitWidth: numbers[2]}
}
