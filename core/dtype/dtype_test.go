package dtype_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
)

func TestNamesRoundTrip(t *testing.T) {
	if len(dtype.All()) != 15 {
		t.Fatalf("All() has %d types", len(dtype.All()))
	}
	for _, typ := range dtype.All() {
		got, err := dtype.Parse(typ.String())
		if err != nil || got != typ {
			t.Errorf("Parse(%q) = %v, %v", typ, got, err)
		}
		code, bits := typ.DLPack()
		if back, ok := dtype.FromDLPack(code, bits); !ok || back != typ {
			t.Errorf("FromDLPack(%d, %d) = %v, want %v", code, bits, back, typ)
		}
	}
}

func TestUnknown(t *testing.T) {
	_, err := dtype.Parse("float8")
	want := `dtype: "float8" is not an element type; use one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if typ, ok := dtype.FromDLPack(dtype.DLFloat, 8); ok {
		t.Errorf("a float of 8 bits is %v", typ)
	}
	if dtype.Invalid.Size() != 0 || dtype.Invalid.String() != "invalid" || dtype.Type(99).Valid() {
		t.Error("the zero value should be invalid")
	}
}

func TestNarrow(t *testing.T) {
	for in, want := range map[dtype.Type]dtype.Type{
		dtype.Int64: dtype.Int32, dtype.Uint64: dtype.Uint32, dtype.Float64: dtype.Float32,
		dtype.Complex128: dtype.Complex64, dtype.Int32: dtype.Int32, dtype.BFloat16: dtype.BFloat16,
	} {
		if got := in.Narrow(); got != want {
			t.Errorf("%v.Narrow() = %v, want %v", in, got, want)
		}
	}
}
