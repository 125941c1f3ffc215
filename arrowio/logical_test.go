package arrowio_test

import (
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
)

// TestLogicalTypes checks that a field of integers has the logical type of its
// column, such as a timestamp in microseconds.
func TestLogicalTypes(t *testing.T) {
	utc := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	for _, c := range []struct {
		typ        arrow.DataType
		json, want string
	}{
		{arrow.FixedWidthTypes.Date32, `["2020-01-01"]`, "date32[day]"},
		{arrow.FixedWidthTypes.Time64us, `["12:00:00"]`, "time64[us]"},
		{arrow.FixedWidthTypes.Duration_ms, `["1ms"]`, "duration[ms]"},
		{utc, `["2020-01-01"]`, "timestamp[us, tz=UTC]"},
		{arrow.FixedSizeListOf(1, utc), `[["2020-01-01"]]`, "timestamp[us, tz=UTC]"},
		{arrow.PrimitiveTypes.Int64, `[1]`, ""},
	} {
		ds, err := arrowio.Open(saveJSON(t, arrow.Field{Name: "x", Type: c.typ}, c.json))
		if err != nil {
			t.Fatal(err)
		}
		if fields := ds.Schema().Fields; len(fields) != 1 || fields[0].Logical != c.want {
			t.Errorf("%v: got %+v, want the logical type %q", c.typ, fields, c.want)
		}
		ds.Close()
	}
}
