package tensors

import (
	"encoding/binary"
	"math"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// narrowings has the conversions from the types with 64-bit parts, by the type that
// JAX narrows them to.
var narrowings = map[dtype.Type]func(name string, dst, src []byte) error{
	dtype.Int32:     narrowInts,
	dtype.Uint32:    narrowUints,
	dtype.Float32:   narrowFloats,
	dtype.Complex64: narrowFloats,
}

func narrowInts(name string, dst, src []byte) error {
	for i := 0; i < len(src); i += 8 {
		n := int64(binary.LittleEndian.Uint64(src[i:]))
		if n != int64(int32(n)) {
			return tooLarge(name, n, dtype.Int64, dtype.Int32)
		}
		binary.LittleEndian.PutUint32(dst[i/2:], uint32(n))
	}
	return nil
}

func narrowUints(name string, dst, src []byte) error {
	for i := 0; i < len(src); i += 8 {
		n := binary.LittleEndian.Uint64(src[i:])
		if n > math.MaxUint32 {
			return tooLarge(name, n, dtype.Uint64, dtype.Uint32)
		}
		binary.LittleEndian.PutUint32(dst[i/2:], uint32(n))
	}
	return nil
}

func narrowFloats(_ string, dst, src []byte) error {
	for i := 0; i < len(src); i += 8 {
		x := math.Float64frombits(binary.LittleEndian.Uint64(src[i:]))
		binary.LittleEndian.PutUint32(dst[i/2:], math.Float32bits(float32(x)))
	}
	return nil
}

func tooLarge(name string, n any, from, to dtype.Type) error {
	return status.Errorf(status.OutOfRange, "tensors", "array %q holds %d, which %v cannot", name, n, to).
		WithHint("deliver it as %v (in JAX: jax.config.update(\"jax_enable_x64\", True)), or store smaller values", from).
		With("field", name)
}

// normalize makes booleans of bytes: in a file, any byte but 0 may stand for true.
func normalize(bools []byte) {
	for i, b := range bools {
		if b > 1 {
			bools[i] = 1
		}
	}
}
