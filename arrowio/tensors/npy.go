package tensors

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/dtype"
)

const (
	npyMagic  = "\x93NUMPY"
	maxNPY    = 1 << 16 // bytes of a header
	maxMember = 1 << 16 // arrays of an .npz file
)

// npyHeader is the header of version 1.0 to 3.0 (numpy.lib.format): a literal of a
// Python dict. NumPy sorts its keys; other programs write fewer spaces and commas. Python 2
// writes long integers as 3L.
var npyHeader = regexp.MustCompile(`^\{\s*'descr'\s*:\s*(.+?)\s*,\s*'fortran_order'\s*:\s*(True|False)\s*,\s*'shape'\s*:\s*\(([0-9L, -]*)\)\s*,?\s*\}\s*$`)

// npyTypes has NumPy's kinds of numbers, with their sizes.
var npyTypes = map[string]dtype.Type{
	"b1": dtype.Bool,
	"i1": dtype.Int8, "i2": dtype.Int16, "i4": dtype.Int32, "i8": dtype.Int64,
	"u1": dtype.Uint8, "u2": dtype.Uint16, "u4": dtype.Uint32, "u8": dtype.Uint64,
	"f2": dtype.Float16, "f4": dtype.Float32, "f8": dtype.Float64,
	"c8": dtype.Complex64, "c16": dtype.Complex128,
}

// readNPY reads the header of the .npy data at the bytes [start, stop) of a file.
func readNPY(ctx context.Context, f blob.Blob, start, stop int64, name string) (a array, err error) {
	a.name = name
	head := make([]byte, min(stop-start, 12))
	if err := read(ctx, f, head, start); err != nil {
		return a, err
	}
	if len(head) < 12 || string(head[:6]) != npyMagic {
		return a, damaged(f, "array %q does not begin with the header of .npy", name)
	}
	var at, n int64
	switch head[6] {
	case 1:
		at, n = 10, int64(binary.LittleEndian.Uint16(head[8:]))
	case 2, 3:
		at, n = 12, int64(binary.LittleEndian.Uint32(head[8:]))
	default:
		return a, unsupported(f, "array %q has version %d.%d of the .npy format", name, head[6], head[7]).WithHint("write it with numpy.save")
	}
	if follow := stop - start - at; n > follow {
		return a, damaged(f, "array %q has a header of %d bytes, but only %d follow", name, n, follow)
	}
	if n > maxNPY {
		return a, unsupported(f, "array %q has a header of %d bytes, but at most %d are read", name, n, maxNPY).WithHint("write it with numpy.save")
	}
	text := make([]byte, n)
	if err := read(ctx, f, text, start+at); err != nil {
		return a, err
	}
	a.offset = start + at + n
	a.sum.head = crc32.Update(crc32.ChecksumIEEE(head[:at]), crc32.IEEETable, text)
	return a, a.parseNPY(f, string(text), stop-a.offset)
}

// parseNPY reads type, order and shape. Space is the number of bytes after the header.
func (a *array) parseNPY(f blob.Blob, text string, space int64) error {
	parts := npyHeader.FindStringSubmatch(text)
	if parts == nil && strings.HasPrefix(text, "{") && strings.HasSuffix(strings.TrimSpace(text), "}") {
		return unsupported(f, "array %q has the header %q, which is not read", a.name, text[:min(len(text), 80)]).WithHint("write it with numpy.save")
	}
	if parts == nil {
		return damaged(f, "array %q has the header %q, expected the header of an .npy file", a.name, text[:min(len(text), 80)])
	}
	a.stored = strings.Trim(parts[1], "'")
	kind := strings.TrimLeft(a.stored, "<|=")
	typ, known := npyTypes[kind]
	_, foreign := npyTypes[strings.TrimPrefix(kind, ">")]
	shape, ok := npyShape(parts[3])
	if !ok {
		return damaged(f, "array %q has the shape (%s): expected at most %d lengths", a.name, parts[3], maxRank)
	}
	a.typ, a.shape = typ, shape
	switch {
	case !known && foreign:
		a.skipped = "its byte order is foreign; save array.astype(array.dtype.newbyteorder(\"=\"))"
		return nil
	case !known:
		a.skipped = "its type " + a.stored + " " + npyRemedy(a.stored)
		return nil
	case parts[2] == "True" && len(shape) > 1:
		a.skipped = "its elements are in Fortran order; save numpy.ascontiguousarray(array)"
		return nil
	}
	n, ok := size(shape, typ.Size())
	if !ok || n > space {
		return damaged(f, "array %q of the type %s and the shape (%s) is longer than the %d bytes after its header", a.name, a.stored, parts[3], space)
	}
	a.bytes = n
	if n < space {
		return damaged(f, "array %q has %d bytes, but %d follow its header", a.name, n, space).
			WithHint("write the file again; for several arrays use numpy.savez")
	}
	return nil
}

// npyRemedy says why arrays of a type of NumPy are not loaded, and what to save instead.
func npyRemedy(stored string) string {
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

// npyShape parses the lengths of a tuple of Python, such as "3, 4" or "3,".
func npyShape(text string) (shape []int, ok bool) {
	shape = []int{}
	text = strings.TrimSuffix(strings.TrimSpace(text), ",")
	if text == "" {
		return shape, true
	}
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(part), "L"), 10, 54)
		if err != nil || n < 0 || len(shape) == maxRank {
			return nil, false
		}
		shape = append(shape, int(n))
	}
	return shape, true
}

// readNPZ lists the arrays of a zip file that numpy.savez wrote.
func readNPZ(ctx context.Context, f blob.Blob) ([]array, error) {
	archive, err := zip.NewReader(blob.Reader(ctx, f), f.Size())
	if err != nil {
		return nil, damaged(f, "the zip directory cannot be read: %v", err)
	}
	if len(archive.File) > maxMember {
		return nil, unsupported(f, "there are %d members, but at most %d are read", len(archive.File), maxMember).WithHint(smaller)
	}
	var arrays []array
	names := map[string]bool{}
	for _, member := range archive.File {
		name, isArray := strings.CutSuffix(member.Name, ".npy")
		if !isArray {
			continue
		}
		if names[name] {
			return nil, damaged(f, "the array %q is there twice", name)
		}
		names[name] = true
		a, err := readMember(ctx, f, member, name)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	if len(arrays) == 0 && len(archive.File) > 0 {
		return nil, unsupported(f, "this zip file has no .npy member; its first member is %q", archive.File[0].Name).
			WithHint("write weights of torch.save with safetensors.torch.save_file")
	}
	return arrays, checkOverlap(f, arrays)
}

// The flags of a member in the zip format. Known are those that do not change the stored bytes: how
// hard the compression tried, sizes after the data, and names in UTF-8.
const (
	zipEncrypted = 1
	zipKnown     = 3<<1 | 1<<3 | 1<<11
)

// readMember reads the header of a member. Only members that are stored as they are
// can be read in parts.
func readMember(ctx context.Context, f blob.Blob, member *zip.File, name string) (array, error) {
	if unknown := member.Flags &^ (zipEncrypted | zipKnown); unknown != 0 {
		return array{name: name, stored: "zip", skipped: fmt.Sprintf("it has the flags %#x of zip, which are not known here; write the file with numpy.savez", unknown)}, nil
	}
	if member.Flags&zipEncrypted != 0 {
		return array{name: name, stored: "zip", skipped: "it is encrypted; write the file with numpy.savez"}, nil
	}
	if member.Method != zip.Store {
		return array{name: name, stored: "zip", skipped: "it is compressed; write the file with numpy.savez"}, nil
	}
	start, err := member.DataOffset()
	if err != nil {
		return array{}, damaged(f, "the member %q cannot be read: %v", member.Name, err)
	}
	length := member.UncompressedSize64
	if start > f.Size() || length > uint64(f.Size()-start) || length != member.CompressedSize64 {
		return array{}, damaged(f, "the member %q has %d bytes at byte %d of %d", member.Name, length, start, f.Size())
	}
	a, err := readNPY(ctx, f, start, start+int64(length), name)
	a.sum.has, a.sum.member = true, member.CRC32
	return a, err
}
