package arrowmeta

import (
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// Type is an Arrow type with its parameters. Fields that its kind does not use are
// zero.
type Type struct {
	Kind       Kind
	BitWidth   int    // bits of one value: Int, Float, Bool, Decimal, Date, Time, Timestamp, Duration, Interval; 0 if unknown
	Signed     bool   // Int
	ByteWidth  int    // FixedSizeBinary: bytes of one value
	ListSize   int    // FixedSizeList: elements of one list
	Precision  int    // Decimal: digits
	Scale      int    // Decimal: digits after the point
	Unit       Unit   // Date, Time, Timestamp, Duration, Interval
	TimeZone   string // Timestamp; empty for local time
	Dense      bool   // Union: has an offsets buffer
	TypeIDs    []int  // Union: the id of each child; nil for 0, 1, 2, ...
	KeysSorted bool   // Map
	Name       string // the producer's name of an unknown kind
	Children   []Field
}

// DType returns the element type of an array of such values, and true. Dates, times,
// timestamps, durations and year-month intervals become the integers that store them. Among
// the other types, only booleans, integers and floats have an element type.
func (t *Type) DType() (dtype.Type, bool) {
	signed, name := t.Signed, "int"
	switch t.Kind {
	case Bool:
		return dtype.Bool, true
	case Float:
		name, signed = "float", true
	case Int:
	case Date, Time, Timestamp, Duration:
		if t.Unit == NoUnit {
			return dtype.Invalid, false
		}
		signed = true
	case Interval:
		if t.Unit != YearMonth {
			return dtype.Invalid, false
		}
		signed = true
	default:
		return dtype.Invalid, false
	}
	if !signed {
		name = "uint"
	}
	d, err := dtype.Parse(fmt.Sprint(name, t.BitWidth))
	return d, err == nil
}

// String returns the type as Arrow's C++ and Python libraries print it, such as
// fixed_size_list<float32>[8] or timestamp[us, tz=UTC]. But floats are named by
// their width, and items of lists have no name.
func (t *Type) String() string {
	if t.Name != "" {
		return fmt.Sprintf("unknown type %q", t.Name)
	}
	switch t.Kind {
	case Int:
		if t.Signed {
			return fmt.Sprint("int", t.BitWidth)
		}
		return fmt.Sprint("uint", t.BitWidth)
	case Float:
		return fmt.Sprint("float", t.BitWidth)
	case Decimal:
		return fmt.Sprintf("decimal%d(%d, %d)", t.BitWidth, t.Precision, t.Scale)
	case Date, Time:
		return fmt.Sprintf("%v%d[%v]", t.Kind, t.BitWidth, t.Unit)
	case Duration:
		return fmt.Sprintf("duration[%v]", t.Unit)
	case Timestamp:
		if t.TimeZone != "" {
			return fmt.Sprintf("timestamp[%v, tz=%s]", t.Unit, t.TimeZone)
		}
		return fmt.Sprintf("timestamp[%v]", t.Unit)
	case Interval:
		return t.Unit.String() + "_interval"
	case FixedSizeBinary:
		return fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)
	}
	return t.nestedString()
}

func (t *Type) nestedString() string {
	switch {
	case t.Kind == FixedSizeList:
		return fmt.Sprintf("fixed_size_list<%s>[%d]", t.childrenString(), t.ListSize)
	case t.Kind == Union && t.Dense:
		return "dense_union<" + t.childrenString() + ">"
	case t.Kind == Union:
		return "sparse_union<" + t.childrenString() + ">"
	case t.Kind == Map && len(t.Children) == 1:
		entries := Type{Kind: Map, Children: t.Children[0].Type.Children}
		return "map<" + entries.childrenString() + ">"
	case t.Kind == Struct || len(t.Children) > 0:
		return t.Kind.String() + "<" + t.childrenString() + ">"
	}
	return t.Kind.String()
}

func (t *Type) childrenString() string {
	parts := make([]string, len(t.Children))
	for i := range t.Children {
		c := &t.Children[i]
		parts[i] = c.TypeString()
		switch t.Kind {
		case Struct, RunEndEncoded:
			parts[i] = c.Name + ": " + parts[i]
		case Union:
			parts[i] = fmt.Sprintf("%s: %s=%d", c.Name, parts[i], t.typeID(i))
		}
	}
	return strings.Join(parts, ", ")
}

func (t *Type) typeID(child int) int {
	if child < len(t.TypeIDs) {
		return t.TypeIDs[child]
	}
	return child
}
