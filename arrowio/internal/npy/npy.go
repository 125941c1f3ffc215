// Package npy reads the header of NumPy's .npy format: the type, the order and the shape of an
// array. The header is a literal of a Python dict (numpy.lib.format). Nothing in it is executed.
package npy

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

const (
	// Magic begins a file.
	Magic = "\x93NUMPY"

	// MaxRank bounds the dimensions of an array; a layout has one more for the batch.
	MaxRank = 31

	maxHeader = 1 << 16 // bytes of a header
)

// Header describes an array.
type Header struct {
	Name    string
	Type    dtype.Type
	Shape   []int
	Stored  string // NumPy's name of the type, such as <f4
	Skipped string // why the elements cannot be read in place, with a remedy; "" if they can
	Start   int64  // offset of the first element
	Bytes   int64  // of all elements, which are little-endian and in C order
	Text    []byte // the stored header
}

// literal is the header of version 1.0 to 3.0. NumPy sorts its keys; other programs write fewer
// spaces and commas. Python 2 writes long integers as 3L.
var literal = regexp.MustCompile(`^\{\s*'descr'\s*:\s*(.+?)\s*,\s*'fortran_order'\s*:\s*(True|False)\s*,\s*'shape'\s*:\s*\(([0-9L, -]*)\)\s*,?\s*\}\s*$`)

// types has NumPy's kinds of numbers, with their sizes.
var types = map[string]dtype.Type{
	"b1": dtype.Bool,
	"i1": dtype.Int8, "i2": dtype.Int16, "i4": dtype.Int32, "i8": dtype.Int64,
	"u1": dtype.Uint8, "u2": dtype.Uint16, "u4": dtype.Uint32, "u8": dtype.Uint64,
	"f2": dtype.Float16, "f4": dtype.Float32, "f8": dtype.Float64,
	"c8": dtype.Complex64, "c16": dtype.Complex128,
}

// Read reads the header of an array with a name, which takes the bytes [start, stop) of a file.
// The errors about its content are of type *status.Error and do not name the file.
func Read(ctx context.Context, f blob.Blob, start, stop int64, name string) (h Header, err error) {
	h.Name = name
	head := make([]byte, min(stop-start, 12))
	if err := blob.ReadFull(ctx, f, head, start); err != nil {
		return h, err
	}
	if len(head) < 12 || string(head[:6]) != Magic {
		return h, damaged("array %q does not begin with the header of .npy", name)
	}
	var at, n int64
	switch head[6] {
	case 1:
		at, n = 10, int64(binary.LittleEndian.Uint16(head[8:]))
	case 2, 3:
		at, n = 12, int64(binary.LittleEndian.Uint32(head[8:]))
	default:
		return h, unsupported("array %q has version %d.%d of the .npy format", name, head[6], head[7])
	}
	if follow := stop - start - at; n > follow {
		return h, damaged("array %q has a header of %d bytes, but only %d follow", name, n, follow)
	}
	if n > maxHeader {
		return h, unsupported("array %q has a header of %d bytes, but at most %d are read", name, n, maxHeader)
	}
	h.Text = make([]byte, at+n)
	if err := blob.ReadFull(ctx, f, h.Text, start); err != nil {
		return h, err
	}
	h.Start = start + at + n
	return h, h.parse(string(h.Text[at:]), stop-h.Start)
}

// parse reads type, order and shape. Space is the number of bytes after the header.
func (h *Header) parse(text string, space int64) error {
	parts := literal.FindStringSubmatch(text)
	if parts == nil && strings.HasPrefix(text, "{") && strings.HasSuffix(strings.TrimSpace(text), "}") {
		return unsupported("array %q has the header %q, which is not read", h.Name, text[:min(len(text), 80)])
	}
	if parts == nil {
		return damaged("array %q has the header %q, expected the header of an .npy file", h.Name, text[:min(len(text), 80)])
	}
	h.Stored = strings.Trim(parts[1], "'")
	kind := strings.TrimLeft(h.Stored, "<|=")
	typ, known := types[kind]
	_, foreign := types[strings.TrimPrefix(kind, ">")]
	shape, ok := shapeOf(parts[3])
	if !ok {
		return damaged("array %q has the shape (%s): expected at most %d lengths", h.Name, parts[3], MaxRank)
	}
	h.Type, h.Shape = typ, shape
	switch {
	case !known && foreign:
		h.Skipped = "its byte order is foreign; save array.astype(array.dtype.newbyteorder(\"=\"))"
		return nil
	case !known:
		h.Skipped = "its type " + h.Stored + " " + remedy(h.Stored)
		return nil
	case parts[2] == "True" && len(shape) > 1:
		h.Skipped = "its elements are in Fortran order; save numpy.ascontiguousarray(array)"
		return nil
	}
	n, ok := Size(shape, typ.Size())
	if !ok || n > space {
		return damaged("array %q of the type %s and the shape (%s) is longer than the %d bytes after its header", h.Name, h.Stored, parts[3], space)
	}
	h.Bytes = n
	if n < space {
		return damaged("array %q has %d bytes, but %d follow its header", h.Name, n, space).
			WithHint("write the file again; for several arrays use numpy.savez")
	}
	return nil
}

// remedy says why arrays of a type of NumPy are not loaded, and what to save instead.
func remedy(stored string) string {
	kind := strings.TrimLeft(stored, "<>|=")
	switch {
	case strings.HasPrefix(kind, "M8") || strings.HasPrefix(kind, "m8"):
		return "stands for times, which JAX does not have; save the counts of its unit, array.astype(numpy.int64)"
	case strings.HasPrefix(kind, "["):
		return "is structured; save each part by itself, as in array[\"a\"]"
	case kind == "f16" || kind == "f12":
		return "has more than 64 bits, which JAX does not have; save array.astype(numpy.float64)"
	case kind == "c32" || kind == "c24":
		return "has more than 128 bits, which JAX does not have; save array.astype(numpy.complex128)"
	case kind == "W4": // from ml_dtypes
		return "is complex of 32 bits, which JAX does not have; save array.astype(numpy.complex64)"
	case strings.HasPrefix(kind, "O"):
		return "stands for pickled Python objects, which are not read; save an array of numbers"
	case strings.HasPrefix(kind, "U"):
		return "stands for text, which JAX does not have; save numbers"
	case strings.HasPrefix(kind, "S"):
		return "stands for bytes; save array.view(numpy.uint8).reshape(*array.shape, -1)"
	}
	return "is not a type of numbers; NumPy does not store the names bfloat16, float8 and int4: use safetensors, or save array.view(numpy.uint8)"
}

// shapeOf parses the lengths of a tuple of Python, such as "3, 4" or "3,".
func shapeOf(text string) (shape []int, ok bool) {
	shape = []int{}
	text = strings.TrimSuffix(strings.TrimSpace(text), ",")
	if text == "" {
		return shape, true
	}
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(part), "L"), 10, 54)
		if err != nil || n < 0 || len(shape) == MaxRank {
			return nil, false
		}
		shape = append(shape, int(n))
	}
	return shape, true
}

// Size returns the bytes of an array. ok is false if a length is negative, or if there are too
// many bytes.
func Size(shape []int, element int) (n int64, ok bool) {
	n = int64(element)
	empty := false
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			empty = true
			continue
		}
		high, low := bits.Mul64(uint64(n), uint64(d))
		if high != 0 || low > math.MaxInt64/16 {
			return 0, false
		}
		n = int64(low)
	}
	if empty {
		return 0, true
	}
	return n, true
}

func damaged(format string, args ...any) *status.Error {
	return status.New(status.DataLoss, "npy", fmt.Sprintf(format, args...)).WithHint("write or fetch the file again")
}

func unsupported(format string, args ...any) *status.Error {
	return status.New(status.Unsupported, "npy", fmt.Sprintf(format, args...)).WithHint("write it with numpy.save")
}
