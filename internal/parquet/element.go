package parquet

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/thrift"
)

// Physical is the type of stored values (the enum Type).
type Physical int32

// The physical types.
const (
	Boolean Physical = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	Fixed          // arrays of bytes, of a fixed length
	group Physical = -1
)

// Bits returns the size of a value in bits, given the length of arrays of type Fixed. It
// is 0 for ByteArray.
func (p Physical) Bits(length int) int {
	switch p {
	case Boolean:
		return 1
	case Int32, Float:
		return 32
	case Int64, Double:
		return 64
	case Int96:
		return 96
	case Fixed:
		return 8 * length
	}
	return 0
}

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// String returns the name in the format's documentation.
func (p Physical) String() string {
	if p >= 0 && int(p) < len(physicalNames) {
		return physicalNames[p]
	}
	return fmt.Sprintf("physical type %d", int32(p))
}

// The logical types: the numbers of the union LogicalType.
const (
	logicalString    = 1
	logicalMap       = 2
	logicalList      = 3
	logicalEnum      = 4
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
	logicalInteger   = 10
	logicalNull      = 11
	logicalJSON      = 12
	logicalBSON      = 13
	logicalFloat16   = 15
	logicalInterval  = -1 // exists only in the older enum ConvertedType
	logicalUnknown   = -2 // from the older enum ConvertedType
)

// element is the struct SchemaElement: a node of the schema, which is listed depth
// first.
type element struct {
	name       string
	physical   Physical // group for a node with children
	length     int      // bytes of a value of type Fixed
	repetition Repetition
	children   int
	logical    logical
}

// logical is the union LogicalType with its parameters.
type logical struct {
	kind             int // 0 for none
	bits             int // bits of an integer
	signed           bool
	unit             arrowmeta.Unit // unit of a time or a timestamp
	utc              bool           // for a timestamp
	precision, scale int
}

// converted lists the logical types of the older enum ConvertedType.
var converted = [...]logical{
	{kind: logicalString}, {kind: logicalMap}, {kind: logicalMap}, {kind: logicalList}, {kind: logicalEnum}, {kind: logicalDecimal}, {kind: logicalDate},
	{kind: logicalTime, unit: arrowmeta.Millisecond}, {kind: logicalTime, unit: arrowmeta.Microsecond},
	{kind: logicalTimestamp, unit: arrowmeta.Millisecond, utc: true}, {kind: logicalTimestamp, unit: arrowmeta.Microsecond, utc: true},
	{kind: logicalInteger, bits: 8}, {kind: logicalInteger, bits: 16}, {kind: logicalInteger, bits: 32}, {kind: logicalInteger, bits: 64},
	{kind: logicalInteger, bits: 8, signed: true}, {kind: logicalInteger, bits: 16, signed: true},
	{kind: logicalInteger, bits: 32, signed: true}, {kind: logicalInteger, bits: 64, signed: true},
	{kind: logicalJSON}, {kind: logicalBSON}, {kind: logicalInterval},
}

// readElement reads the struct SchemaElement.
func readElement(r *thrift.Reader) element {
	e := element{physical: group}
	convertedType, precision, scale := -1, 0, 0
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			e.physical = Physical(r.Int32(kind))
		case 2:
			e.length = int(r.Int32(kind))
		case 3:
			e.repetition = Repetition(r.Int32(kind))
		case 4:
			e.name = r.String(kind)
		case 5:
			e.children = int(r.Int32(kind))
		case 6:
			convertedType = int(r.Int32(kind))
		case 7:
			scale = int(r.Int32(kind))
		case 8:
			precision = int(r.Int32(kind))
		case 10:
			e.logical = readLogical(r, kind)
		}
	})
	switch {
	case e.logical.kind != 0 || convertedType < 0:
	case convertedType < len(converted):
		e.logical = converted[convertedType]
		e.logical.precision, e.logical.scale = precision, scale
	default:
		e.logical.kind = logicalUnknown
	}
	if e.children < 0 || e.length < 0 {
		r.Fail("column %q has %d children and values of %d bytes", e.name, e.children, e.length)
	}
	return e
}

// readLogical reads the union LogicalType: a struct with one field, itself a struct of
// the parameters.
func readLogical(r *thrift.Reader, kind thrift.Kind) (l logical) {
	r.Union(kind, func(id int) {
		l = logical{kind: id}
		r.Struct(func(parameter int, kind thrift.Kind) { l.read(r, parameter, kind) })
	})
	return l
}

// read reads one parameter.
func (l *logical) read(r *thrift.Reader, parameter int, kind thrift.Kind) {
	switch {
	case l.kind == logicalDecimal && parameter == 1:
		l.scale = int(r.Int32(kind))
	case l.kind == logicalDecimal && parameter == 2:
		l.precision = int(r.Int32(kind))
	case l.kind == logicalInteger && parameter == 1:
		l.bits = int(r.Int8(kind))
	case l.kind == logicalInteger && parameter == 2:
		l.signed = r.Bool(kind)
	case (l.kind == logicalTime || l.kind == logicalTimestamp) && parameter == 1:
		l.utc = r.Bool(kind)
	case (l.kind == logicalTime || l.kind == logicalTimestamp) && parameter == 2:
		r.Union(kind, func(unit int) {
			if unit > 0 && unit < len(units) {
				l.unit = units[unit]
			}
		})
	}
}

// units are the members of the union TimeUnit.
var units = [...]arrowmeta.Unit{1: arrowmeta.Millisecond, arrowmeta.Microsecond, arrowmeta.Nanosecond}

// annotates lists the physical types of each logical type (LogicalTypes.md). Other logical
// types have no effect on how values are read.
var annotates = [...][]Physical{
	logicalString: {ByteArray}, logicalEnum: {ByteArray}, logicalJSON: {ByteArray}, logicalDecimal: {Int32, Int64, ByteArray, Fixed},
	logicalDate: {Int32}, logicalTime: {Int32, Int64}, logicalTimestamp: {Int64}, logicalInteger: {Int32, Int64}, logicalFloat16: {Fixed},
}

// check returns an error unless the values of a column can have its logical type.
func (e *element) check() error {
	l := &e.logical
	var allowed []Physical
	if l.kind >= 0 && l.kind < len(annotates) {
		allowed = annotates[l.kind]
	}
	switch {
	case allowed != nil && !slices.Contains(allowed, e.physical):
		return fmt.Errorf("column %q has values of type %v with the logical type %d", e.name, e.physical, l.kind)
	case l.kind == logicalInteger && !slices.Contains([]int{8, 16, 32, 64}, l.bits), l.kind == logicalInteger && (l.bits == 64) != (e.physical == Int64):
		return fmt.Errorf("column %q has values of type %v with integers of %d bits", e.name, e.physical, l.bits)
	case (l.kind == logicalTime || l.kind == logicalTimestamp) && l.unit == arrowmeta.NoUnit:
		return Unsupported(fmt.Sprintf("column %q has times of an unknown unit", e.name))
	case l.kind == logicalTime && (l.unit == arrowmeta.Millisecond) != (e.physical == Int32):
		return fmt.Errorf("column %q has values of type %v with times in %v", e.name, e.physical, l.unit)
	case l.kind == logicalFloat16 && e.length != 2:
		return fmt.Errorf("column %q has numbers of type float16 in %d bytes", e.name, e.length)
	}
	return nil
}

// leaf returns the type of the values of a column.
func (e *element) leaf() arrowmeta.Type {
	l := &e.logical
	switch l.kind {
	case logicalString, logicalJSON:
		return arrowmeta.Type{Kind: arrowmeta.String}
	case logicalDecimal:
		t := arrowmeta.Type{Kind: arrowmeta.Decimal, BitWidth: 128, Precision: l.precision, Scale: l.scale}
		if l.precision > 38 {
			t.BitWidth = 256
		}
		return t
	case logicalDate:
		return arrowmeta.Type{Kind: arrowmeta.Date, BitWidth: 32, Unit: arrowmeta.Day}
	case logicalTime:
		return arrowmeta.Type{Kind: arrowmeta.Time, BitWidth: e.physical.Bits(0), Unit: l.unit}
	case logicalTimestamp:
		t := arrowmeta.Type{Kind: arrowmeta.Timestamp, BitWidth: 64, Unit: l.unit}
		if l.utc {
			t.TimeZone = "UTC"
		}
		return t
	case logicalInteger:
		return arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: l.bits, Signed: l.signed}
	case logicalNull:
		return arrowmeta.Type{Kind: arrowmeta.Null}
	case logicalFloat16:
		return arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 16}
	case logicalInterval:
		return arrowmeta.Type{Kind: arrowmeta.Interval, BitWidth: 96, Unit: arrowmeta.MonthDayNano}
	}
	return e.plain()
}

// plain returns the type of values as they are stored. Bytes are bytes whatever their logical type
// is. Numbers with a logical type that is not known here may stand for others.
func (e *element) plain() arrowmeta.Type {
	if e.logical.kind != 0 && e.physical != ByteArray && e.physical != Fixed {
		return arrowmeta.Type{Kind: arrowmeta.Unknown, Name: fmt.Sprintf("%v with an unknown logical type", e.physical)}
	}
	switch e.physical {
	case ByteArray:
		return arrowmeta.Type{Kind: arrowmeta.Binary}
	case Boolean:
		return arrowmeta.Type{Kind: arrowmeta.Bool, BitWidth: 1}
	case Int32:
		return arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	case Int64:
		return arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 64, Signed: true}
	case Int96: // writers use it for timestamps only
		return arrowmeta.Type{Kind: arrowmeta.Timestamp, BitWidth: 64, Unit: arrowmeta.Nanosecond}
	case Float:
		return arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 32}
	case Double:
		return arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 64}
	case Fixed:
		return arrowmeta.Type{Kind: arrowmeta.FixedSizeBinary, ByteWidth: e.length}
	}
	return arrowmeta.Type{Kind: arrowmeta.Unknown, Name: e.physical.String()}
}
