package flat

import (
	"context"
	"path"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/npy"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
)

// NPY is the format of .npy files. The first dimension of the array counts records.
type NPY struct{}

// Recognize implements format.Format.
func (NPY) Recognize(head, _ []byte, _ int64) bool { return strings.HasPrefix(string(head), npy.Magic) }

// Open implements format.Format.
func (NPY) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
	base := path.Base(content.Name())
	h, err := npy.Read(ctx, content, 0, content.Size(), strings.TrimSuffix(base, path.Ext(base)))
	const numpy = `mf.from_arrays({"x": numpy.load("in.npy", mmap_mode="r")})`
	switch {
	case err != nil:
		return nil, err
	case h.Skipped != "":
		return nil, status.Errorf(status.Unsupported, "arrowio", "array %q: %s", h.Name, h.Skipped)
	case len(h.Shape) == 0:
		return nil, status.Errorf(status.Unsupported, "arrowio", "array %q is a single number, which has no records", h.Name).
			WithHint("save an array with a dimension for the records")
	case !storable(h.Type):
		return nil, status.Errorf(status.Unsupported, "arrowio", "array %q of the type %v is not read as records", h.Name, h.Type).WithHint("%s", numpy)
	}
	return array{typ: h.Type, shape: h.Shape[1:], start: h.Start, records: int64(h.Shape[0])}.open(content, "npy")
}
