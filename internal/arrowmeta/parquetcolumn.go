package arrowmeta

// The physical types of Parquet (the enum Type).
const (
	parquetBoolean = iota
	parquetInt32
	parquetInt64
	parquetInt96
	parquetFloat
	parquetDouble
	parquetByteArray
	parquetFixed
	parquetGroup = -1
)

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
)

// How often a column may occur in a row (the enum FieldRepetitionType).
const (
	parquetOptional = 1
	parquetRepeated = 2
)

// parquetColumn is the struct SchemaElement: a node of the schema, which is
// listed depth first.
type parquetColumn struct {
	name       string
	physical   int // parquetGroup for a node with children
	length     int // bytes of a value of parquetFixed
	repetition int
	children   int
	logical    logical
}

// logical is the union LogicalType with its parameters.
type logical struct {
	kind             int // 0 for none
	bits             int // of an integer
	signed           bool
	unit             Unit // of a time or a timestamp
	utc              bool // of a timestamp
	precision, scale int
}

// converted lists the logical types of the older enum ConvertedType.
var converted = [...]logical{
	{kind: logicalString}, {kind: logicalMap}, {kind: logicalMap}, {kind: logicalList}, {kind: logicalEnum}, {kind: logicalDecimal}, {kind: logicalDate},
	{kind: logicalTime, unit: Millisecond}, {kind: logicalTime, unit: Microsecond},
	{kind: logicalTimestamp, unit: Millisecond, utc: true}, {kind: logicalTimestamp, unit: Microsecond, utc: true},
	{kind: logicalInteger, bits: 8}, {kind: logicalInteger, bits: 16}, {kind: logicalInteger, bits: 32}, {kind: logicalInteger, bits: 64},
	{kind: logicalInteger, bits: 8, signed: true}, {kind: logicalInteger, bits: 16, signed: true},
	{kind: logicalInteger, bits: 32, signed: true}, {kind: logicalInteger, bits: 64, signed: true},
	{kind: logicalJSON}, {kind: logicalBSON}, {kind: logicalInterval},
}

// readColumn reads the struct SchemaElement.
func readColumn(t *thrift) parquetColumn {
	c := parquetColumn{physical: parquetGroup}
	convertedType, precision, scale := -1, 0, 0
	number := func(to *int, kind byte) {
		if t.want(kind, thriftI32) {
			*to = int(int32(t.integer()))
		}
	}
	t.structure(func(id int, kind byte) {
		switch id {
		case 1:
			number(&c.physical, kind)
		case 2:
			number(&c.length, kind)
		case 3:
			number(&c.repetition, kind)
		case 4:
			if t.want(kind, thriftBinary) {
				c.name = string(t.bytes())
			}
		case 5:
			number(&c.children, kind)
		case 6:
			number(&convertedType, kind)
		case 7:
			number(&scale, kind)
		case 8:
			number(&precision, kind)
		case 10:
			if t.want(kind, thriftStruct) {
				c.logical = readLogical(t)
			}
		default:
			t.skip(kind, false)
		}
	})
	if c.logical.kind == 0 && convertedType >= 0 && convertedType < len(converted) {
		c.logical = converted[convertedType]
		c.logical.precision, c.logical.scale = precision, scale
	}
	if c.children < 0 || c.length < 0 {
		t.fail("column %q has %d children and values of %d bytes", c.name, c.children, c.length)
	}
	return c
}

// readLogical reads the union LogicalType: a struct with one field, itself a
// struct of the parameters.
func readLogical(t *thrift) (l logical) {
	t.structure(func(id int, kind byte) {
		if !t.want(kind, thriftStruct) {
			return
		}
		l = logical{kind: id}
		t.structure(func(parameter int, kind byte) { l.read(t, parameter, kind) })
	})
	return l
}

// read reads one parameter.
func (l *logical) read(t *thrift, parameter int, kind byte) {
	switch {
	case l.kind == logicalDecimal && parameter == 1 && kind == thriftI32:
		l.scale = int(int32(t.integer()))
	case l.kind == logicalDecimal && parameter == 2 && kind == thriftI32:
		l.precision = int(int32(t.integer()))
	case l.kind == logicalInteger && parameter == 1 && kind == thriftByte:
		l.bits = int(t.u8())
	case l.kind == logicalInteger && parameter == 2:
		l.signed = kind == thriftTrue
	case (l.kind == logicalTime || l.kind == logicalTimestamp) && parameter == 1:
		l.utc = kind == thriftTrue
	case (l.kind == logicalTime || l.kind == logicalTimestamp) && parameter == 2 && kind == thriftStruct:
		t.structure(func(unit int, kind byte) {
			l.unit = pick(unit, NoUnit, Millisecond, Microsecond, Nanosecond)
			t.skip(kind, false)
		})
	default:
		t.skip(kind, false)
	}
}

// leaf returns the type of the values of a column.
func (c *parquetColumn) leaf() Type {
	l := &c.logical
	switch l.kind {
	case logicalString, logicalEnum, logicalJSON:
		return Type{Kind: String}
	case logicalDecimal:
		return Type{Kind: Decimal, BitWidth: 128, Precision: l.precision, Scale: l.scale}
	case logicalDate:
		return Type{Kind: Date, BitWidth: 32, Unit: Day}
	case logicalTime:
		if c.physical == parquetInt32 {
			return Type{Kind: Time, BitWidth: 32, Unit: l.unit}
		}
		return Type{Kind: Time, BitWidth: 64, Unit: l.unit}
	case logicalTimestamp:
		t := Type{Kind: Timestamp, BitWidth: 64, Unit: l.unit}
		if l.utc {
			t.TimeZone = "UTC"
		}
		return t
	case logicalInteger:
		return Type{Kind: Int, BitWidth: l.bits, Signed: l.signed}
	case logicalNull:
		return Type{Kind: Null}
	case logicalFloat16:
		return Type{Kind: Float, BitWidth: 16}
	case logicalInterval:
		return Type{Kind: Interval, BitWidth: 96, Unit: MonthDayNano}
	}
	return c.plain()
}

// plain returns the type of values without a logical type.
func (c *parquetColumn) plain() Type {
	switch c.physical {
	case parquetBoolean:
		return Type{Kind: Bool, BitWidth: 1}
	case parquetInt32:
		return Type{Kind: Int, BitWidth: 32, Signed: true}
	case parquetInt64:
		return Type{Kind: Int, BitWidth: 64, Signed: true}
	case parquetInt96: // writers use it for timestamps only
		return Type{Kind: Timestamp, BitWidth: 64, Unit: Nanosecond}
	case parquetFloat:
		return Type{Kind: Float, BitWidth: 32}
	case parquetDouble:
		return Type{Kind: Float, BitWidth: 64}
	case parquetFixed:
		return Type{Kind: FixedSizeBinary, ByteWidth: c.length}
	}
	return Type{Kind: Binary}
}
