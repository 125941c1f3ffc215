package flat

import (
	"context"
	"encoding/binary"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// Raw describes files that hold elements and do not say so. Nothing recognizes them: the caller
// names their type.
type Raw struct {
	Type dtype.Type
	Skip int64 // bytes before the first element
}

// Check returns an error for a type or a number of bytes that no raw file can have.
func (r Raw) Check() error {
	switch {
	case r.Skip < 0:
		return status.Errorf(status.InvalidArgument, "arrowio", "skip is %d bytes", r.Skip).WithHint("give the bytes before the first element")
	case r.Skip > 0 && r.Type == dtype.Invalid:
		return status.Errorf(status.InvalidArgument, "arrowio", "skip is %d bytes, but dtype is not given", r.Skip).
			WithHint(`only raw files have bytes to skip: give the type of their elements, such as dtype="uint16"`)
	case r.Type != dtype.Invalid && !storable(r.Type):
		return status.Errorf(status.InvalidArgument, "arrowio", "raw elements cannot be read as %v", r.Type).
			WithHint("read booleans as uint8, and complex numbers as floats")
	}
	return nil
}

// Open opens a raw file.
func (r Raw) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
	if r.Skip == 0 {
		if h, err := HeaderOf(ctx, content); err != nil {
			return nil, err
		} else if h != nil {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "the file begins with a header of %d bytes, which would be read as elements", h.Skip).
				WithHint("give skip=%d", h.Skip)
		}
	}
	left, size := content.Size()-r.Skip, int64(r.Type.Size())
	switch {
	case left < 0:
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "the file has %d bytes, fewer than the %d that are skipped", content.Size(), r.Skip).
			WithHint("correct skip, or write the file again if it was cut short")
	case left%size != 0:
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "the file has %d bytes after the %d that are skipped, which is not a multiple of the %d bytes of %v", left, r.Skip, size, r.Type).
			WithHint("correct dtype; if a header comes first, give its bytes as skip; or write the file again if it was cut short")
	}
	return array{typ: r.Type, start: r.Skip, records: left / size}.open(content, "raw")
}

// The header of token files for llm.c and modded-nanoGPT: 256 integers of 32 bits. The first three
// are a magic number, a version and the number of tokens.
const headerBytes = 1024

var headers = map[uint32]dtype.Type{20240520: dtype.Uint16, 20240801: dtype.Uint32}

// HeaderOf returns how to read a file with a known header, or nil. The number of tokens in the
// header must fit the size of the file.
func HeaderOf(ctx context.Context, content *resident.File) (*Raw, error) {
	if content.Size() < headerBytes {
		return nil, nil
	}
	var head [12]byte
	if err := content.ReadFull(ctx, head[:], 0); err != nil {
		return nil, err
	}
	r := &Raw{headers[binary.LittleEndian.Uint32(head[:])], headerBytes}
	tokens := int64(binary.LittleEndian.Uint32(head[8:]))
	if r.Type == dtype.Invalid || content.Size() != headerBytes+tokens*int64(r.Type.Size()) {
		return nil, nil
	}
	return r, nil
}

// Untyped returns the error for a file that is raw by its name, if the caller names no type.
func Untyped(ctx context.Context, content *resident.File) error {
	h, err := HeaderOf(ctx, content)
	if err != nil {
		return err
	}
	e := status.New(status.Unsupported, "arrowio", "the file does not say what its elements are").With("format", "raw")
	if h != nil {
		return e.WithHint("it begins as token files of llm.c and modded-nanoGPT do: give dtype=%q and skip=%d", h.Type, h.Skip)
	}
	return e.WithHint(`give their type, such as dtype="uint16" for tokens of nanoGPT, and with skip the bytes of a header; if an .idx of Megatron lies beside it, open that`)
}
