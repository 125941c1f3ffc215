package arrowtype

import (
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// fixedSizeBinaryKind describes values of a fixed number of bytes, which are a
// dimension of uint8.
type fixedSizeBinaryKind struct{}

func (fixedSizeBinaryKind) matches(f *arrowmeta.Field) bool {
	return f.Type.Kind == arrowmeta.FixedSizeBinary
}

func (fixedSizeBinaryKind) describe(d *description, f *arrowmeta.Field) string {
	d.binary = f.Type.ByteWidth
	return d.values(fixed(f.Type.ByteWidth), dtype.Uint8, f.Type.ByteWidth)
}
