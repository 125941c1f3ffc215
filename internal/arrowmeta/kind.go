package arrowmeta

import "fmt"

// Kind is the family of an Arrow type. The numbers are from the union "Type" in Schema.fbs.
// Larger numbers are types of later versions of Arrow.
type Kind uint8

// The kinds of Arrow types.
const (
	Unknown         Kind = 0 // a type of the C data interface that meshfeed does not know, named by its format string
	Null            Kind = 1
	Int             Kind = 2
	Float           Kind = 3
	Binary          Kind = 4
	String          Kind = 5
	Bool            Kind = 6
	Decimal         Kind = 7
	Date            Kind = 8
	Time            Kind = 9
	Timestamp       Kind = 10
	Interval        Kind = 11
	List            Kind = 12
	Struct          Kind = 13
	Union           Kind = 14
	FixedSizeBinary Kind = 15
	FixedSizeList   Kind = 16
	Map             Kind = 17
	Duration        Kind = 18
	LargeBinary     Kind = 19
	LargeString     Kind = 20
	LargeList       Kind = 21
	RunEndEncoded   Kind = 22
	BinaryView      Kind = 23
	StringView      Kind = 24
	ListView        Kind = 25
	LargeListView   Kind = 26
)

var kindNames = [...]string{
	Null: "null", Int: "int", Float: "float", Binary: "binary", String: "string", Bool: "bool",
	Decimal: "decimal", Date: "date", Time: "time", Timestamp: "timestamp", Interval: "interval",
	List: "list", Struct: "struct", Union: "union", FixedSizeBinary: "fixed_size_binary",
	FixedSizeList: "fixed_size_list", Map: "map", Duration: "duration", LargeBinary: "large_binary",
	LargeString: "large_string", LargeList: "large_list", RunEndEncoded: "run_end_encoded",
	BinaryView: "binary_view", StringView: "string_view", ListView: "list_view",
	LargeListView: "large_list_view",
}

// Known reports whether k is one of the kinds above, except Unknown. The number of
// buffers of an unknown kind is not known. So neither its column nor the columns
// after it can be located in a record batch.
func (k Kind) Known() bool { return int(k) < len(kindNames) && kindNames[k] != "" }

// Temporal reports whether the values are dates, times, durations or intervals.
func (k Kind) Temporal() bool {
	switch k {
	case Date, Time, Timestamp, Duration, Interval:
		return true
	}
	return false
}

// String returns Arrow's name of the kind.
func (k Kind) String() string {
	if k.Known() {
		return kindNames[k]
	}
	return fmt.Sprintf("unknown type %d", uint8(k))
}

// Unit is the resolution of a temporal type.
type Unit uint8

// The units of dates, times, timestamps and durations, then the units of intervals.
const (
	NoUnit Unit = iota
	Day
	Second
	Millisecond
	Microsecond
	Nanosecond
	YearMonth
	DayTime
	MonthDayNano
)

var unitNames = [...]string{
	NoUnit: "?", Day: "day", Second: "s", Millisecond: "ms", Microsecond: "us", Nanosecond: "ns",
	YearMonth: "year_month", DayTime: "day_time", MonthDayNano: "month_day_nano",
}

// String returns the unit as Arrow prints it, "?" for an unknown one.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return unitNames[NoUnit]
}
