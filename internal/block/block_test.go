package block

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/gather"
)

func box(ranges ...[2]int) [][2]int { return ranges }

func TestRefusals(t *testing.T) {
	image := source.Field{Name: "image", Type: dtype.Float32, Shape: []int{4, 6}}
	label := source.Field{Name: "label", Type: dtype.Int64, Nullable: true}
	for _, c := range []struct {
		field source.Field
		part  source.Part
		code  status.Code
		want  string
	}{
		{image, source.Part{}, status.InvalidArgument, `source: a part of field "image" takes no box of its rows`},
		{image, source.Part{Boxes: [][][2]int{box()}}, status.InvalidArgument,
			`source: a part of field "image" takes a box of 0 dimensions, but its rows have 2`},
		{image, source.Part{Boxes: [][][2]int{box([2]int{0, 4}, [2]int{3, 7})}}, status.InvalidArgument,
			`source: a part of field "image" takes [3, 7) of dimension 1, whose size is 6`},
		{image, source.Part{Boxes: [][][2]int{box([2]int{2, 1}, [2]int{0, 6})}}, status.InvalidArgument,
			`source: a part of field "image" takes [2, 1) of dimension 0, whose size is 4`},
		{image, source.Part{Boxes: [][][2]int{box([2]int{0, 1}, [2]int{0, 6}), box([2]int{1, 2}, [2]int{0, 5})}}, status.InvalidArgument,
			`source: the boxes of a part of field "image" differ in other dimensions than the first`},
		{label, source.Part{Boxes: [][][2]int{box(), box()}}, status.InvalidArgument,
			`source: a part of field "label" takes 2 boxes of a scalar`},
		{image, source.Part{To: dtype.Int32, Boxes: [][][2]int{box([2]int{0, 4}, [2]int{0, 6})}}, status.Unsupported,
			`source: field "image" is stored as float32 and cannot be delivered as int32; ask for float32, and convert it on the device`},
		{label, source.Part{To: dtype.Int16, Boxes: [][][2]int{box()}}, status.Unsupported,
			`source: field "label" is stored as int64 and cannot be delivered as int16; ask for int64 or int32`},
		{source.Field{Name: "text", Type: dtype.Uint8, Ragged: 1}, source.Part{Boxes: [][][2]int{box()}}, status.InvalidArgument,
			`source: field "text" cannot be an array: its rows are lists of different lengths; give them one length: ds.pad("text", length=…) in Python, view.Pad in Go, mf_dataset_pad in C`},
		{label, source.Part{Boxes: [][][2]int{box()}, Fill: 0.5}, status.InvalidArgument,
			`source: 0.5 cannot replace the nulls of field "label": int64 cannot hold it`},
		{label, source.Part{Boxes: [][][2]int{box()}, To: dtype.Int32, Fill: int64(1 << 31)}, status.InvalidArgument,
			`source: 2147483648 cannot replace the nulls of field "label": int32 cannot hold it`},
		{label, source.Part{Boxes: [][][2]int{box()}, Fill: "0"}, status.InvalidArgument,
			`source: field "label" cannot have a string in the place of nulls; give a boolean or a number`},
	} {
		_, err := compile(c.field, Form{}, c.part)
		if err == nil || err.Error() != c.want || status.CodeOf(err) != c.code {
			t.Errorf("got  %v\nwant %v", err, c.want)
		}
	}
}

// TestEveryConversion delivers each type as itself and as its narrow form.
func TestEveryConversion(t *testing.T) {
	for _, typ := range dtype.All() {
		for _, to := range []dtype.Type{typ, typ.Narrow(), dtype.Invalid} {
			p, err := compile(source.Field{Name: "x", Type: typ}, Form{}, source.Part{To: to, Boxes: [][][2]int{box()}})
			want := to
			if to == dtype.Invalid {
				want = typ
			}
			if err != nil || p.Bytes() != want.Size() || p.fill != nil {
				t.Errorf("%v as %v: %+v, %v", typ, to, p, err)
			}
		}
	}
}

func TestFills(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		to   dtype.Type
		fill any
		want string // "" where it is refused
	}{
		{dtype.Bool, true, "01"}, {dtype.Bool, int64(1), ""}, {dtype.Int8, true, ""},
		{dtype.Int8, int64(-128), "80"}, {dtype.Int8, int64(128), ""}, {dtype.Uint8, int64(255), "ff"}, {dtype.Uint8, int64(-1), ""},
		{dtype.Int16, 2.0, "0200"}, {dtype.Int16, 2.5, ""}, {dtype.Int32, nan, ""},
		{dtype.Int64, int64(math.MinInt64), "0000000000000080"}, {dtype.Int64, uint64(1 << 63), ""},
		{dtype.Uint64, uint64(math.MaxUint64), "ffffffffffffffff"}, {dtype.Uint32, uint64(7), "07000000"},
		{dtype.Float32, int64(1), "0000803f"}, {dtype.Float32, 1e39, ""}, {dtype.Float32, math.Inf(1), "0000807f"}, {dtype.Float32, nan, "0000c07f"},
		{dtype.Float64, 0.5, "000000000000e03f"},
		{dtype.Float16, 1.0, "003c"}, {dtype.Float16, 65504.0, "ff7b"}, {dtype.Float16, 65520.0, ""}, {dtype.Float16, math.Inf(-1), "00fc"},
		{dtype.BFloat16, 1.0, "803f"}, {dtype.BFloat16, nan, "c07f"}, {dtype.BFloat16, 3.4e38, ""},
		{dtype.Complex64, 1i, "000000000000803f"}, {dtype.Complex64, 1.0, "0000803f00000000"}, {dtype.Float32, 1i, ""},
		{dtype.Int32, "1", ""}, {dtype.Int32, -2, "feffffff"}, {dtype.Int8, 128, ""}, {dtype.Uint8, uint16(255), "ff"},
		{dtype.Float32, float32(0.5), "0000003f"}, {dtype.Complex64, complex64(1i), "000000000000803f"},
	} {
		p, err := compile(source.Field{Name: "x", Type: c.to, Nullable: true}, Form{}, source.Part{Boxes: [][][2]int{box()}, Fill: c.fill})
		got := ""
		if err == nil {
			got = fmt.Sprintf("%x", p.fill)
		}
		if got != c.want {
			t.Errorf("%v as %v: got %q, %v, want %q", c.fill, c.to, got, err, c.want)
		}
	}
}

// TestToFloat16 converts every binary16 to a float64 and back, and values halfway
// between neighbors to the even one.
func TestToFloat16(t *testing.T) {
	value := func(h uint16) float64 {
		exponent, fraction := int(h>>10&31), float64(h&1023)
		if exponent == 0 {
			return math.Ldexp(fraction, -24)
		}
		return math.Ldexp(1024+fraction, exponent-25)
	}
	for h := uint16(0); h < 0x7c00; h++ {
		if toFloat16(value(h)) != h || toFloat16(-value(h)) != h|0x8000 {
			t.Fatalf("%#x: %v became %#x", h, value(h), toFloat16(value(h)))
		}
		if h < 0x7bff {
			middle := (value(h) + value(h+1)) / 2
			if even := h + h&1; toFloat16(middle) != even {
				t.Fatalf("%v, between %#x and %#x, became %#x", middle, h, h+1, toFloat16(middle))
			}
		}
	}
	for v, want := range map[float64]uint16{65519: 0x7bff, 65520: 0x7c00, 1e300: 0x7c00, 1e-300: 0} {
		if toFloat16(v) != want {
			t.Errorf("%v became %#x, want %#x", v, toFloat16(v), want)
		}
	}
}

var row = make([]byte, 0, 24) // not on a stack, which may move

func TestFillNulls(t *testing.T) {
	f := source.Field{Name: "x", Type: dtype.Int16, Shape: []int{3, 4}, Nullable: true}
	p, err := compile(f, Form{}, source.Part{Fill: int64(-1), Boxes: [][][2]int{
		box([2]int{2, 3}, [2]int{1, 3}), box([2]int{0, 2}, [2]int{1, 3}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	row = row[:0]
	for i := range uint16(12) {
		row = binary.LittleEndian.AppendUint16(row, i)
	}
	dst := make([]byte, p.Bytes())
	address := uintptr(unsafe.Pointer(&row[0]))
	if err := gather.Run([]uintptr{address}, []gather.Job{{Program: p.Program, Rows: [2]int{0, 1}, Dst: dst}}, gather.Options{}); err != nil {
		t.Fatal(err)
	}
	nulls := make([]bool, 12)
	nulls[5], nulls[10], nulls[11] = true, true, true
	p.fillNulls(dst, nulls)
	var got []int16
	for i := 0; i < len(dst); i += 2 {
		got = append(got, int16(binary.LittleEndian.Uint16(dst[i:])))
	}
	if want := []int16{9, -1, 1, 2, -1, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
