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
	dtype.Int32:     narrowIntegers[int64, int32],
	dtype.Uint32:    narrowIntegers[uint64, uint32],
	dtype.Float32:   narrowFloats,
	dtype.Complex64: narrowFloats,
}

func narrowIntegers[Wide int64 | uint64, Narrow int32 | uint32](name string, dst, src []byte) error {
	for i := 0; i < len(src); i += 8 {
		n := Wide(binary.LittleEndian.Uint64(src[i:]))
		if n != Wide(Narrow(n)) {
			return status.Errorf(status.OutOfRange, "tensors", "array %q holds %d, which %T cannot", name, n, Narrow(0)).
				WithHint("deliver it as %T (in JAX: jax.config.update(\"jax_enable_x64\", True)), or store smaller values", n).
				With("field", name)
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

// normalize makes booleans of bytes: in a file, any byte but 0 may stand for true.
func normalize(bools []byte) {
	for i, b := range bools {
		if b > 1 {
			bools[i] = 1
		}
	}
}
