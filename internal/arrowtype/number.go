package arrowtype

import "github.com/meshfeed/meshfeed/internal/arrowmeta"

// numberKind describes integers, floats, and the integers that stand for dates,
// times, timestamps, durations and year-month intervals.
type numberKind struct{}

func (numberKind) matches(f *arrowmeta.Field) bool {
	_, ok := f.Type.DType()
	return ok
}

func (numberKind) describe(d *description, f *arrowmeta.Field) string {
	typ, _ := f.Type.DType()
	if f.Type.Kind.Temporal() {
		d.Logical = f.Type.String()
	}
	return d.values(fixed(typ.Size()), typ)
}

// fixed is a level of values that are stored as the elements of an array are. The
// number is the size of a value in bytes.
type fixed int

func (b fixed) Buffer() Buffer { return Buffer{Bits: 8 * int64(b)} }

func (b fixed) Direct() bool { return true }

func (b fixed) Size() int64 { return 8 * int64(b) }

func (b fixed) Row(d *Data, _ int64) ([]byte, error) { return d.Bytes, nil }

func (b fixed) Copy(dst []byte, d *Data, _ int64) error {
	copy(dst, d.Bytes)
	return nil
}
