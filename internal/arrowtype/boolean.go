package arrowtype

import (
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// booleanKind describes booleans. Arrow stores them as bits; delivered arrays hold
// them as bytes.
type booleanKind struct{}

func (booleanKind) matches(f *arrowmeta.Field) bool { return f.Type.Kind == arrowmeta.Bool }

func (booleanKind) describe(d *description, _ *arrowmeta.Field) string {
	return d.values(boolean{}, dtype.Bool)
}

type boolean struct{}

func (boolean) Buffer() Buffer { return Buffer{Bits: 1} }

func (boolean) Direct() bool { return true }

func (boolean) Size() int64 { return 1 }

func (boolean) Row(*Data, int64) ([]byte, error) { return nil, nil }

func (boolean) Copy(dst []byte, d *Data, count int64) error {
	for i := range count {
		bit := d.Bit + i
		dst[i] = d.Bytes[bit>>3] >> (bit & 7) & 1
	}
	return nil
}
