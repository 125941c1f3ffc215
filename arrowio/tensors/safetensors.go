package tensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/npy"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// maxHeader is the limit of the reference implementation (safetensors 0.8,
// MAX_HEADER_SIZE).
const maxHeader = 100_000_000

const metadata = "__metadata__" // the key that is not an array

type element struct {
	typ     dtype.Type
	logical string
}

// elements has the types of safetensors by name. Types that package dtype does not
// have are delivered as bytes, with their name in JAX.
var elements = map[string]element{
	"BOOL": {typ: dtype.Bool},
	"U8":   {typ: dtype.Uint8}, "U16": {typ: dtype.Uint16}, "U32": {typ: dtype.Uint32}, "U64": {typ: dtype.Uint64},
	"I8": {typ: dtype.Int8}, "I16": {typ: dtype.Int16}, "I32": {typ: dtype.Int32}, "I64": {typ: dtype.Int64},
	"F16": {typ: dtype.Float16}, "BF16": {typ: dtype.BFloat16}, "F32": {typ: dtype.Float32}, "F64": {typ: dtype.Float64},
	"C64":         {typ: dtype.Complex64},
	"F8_E4M3":     {dtype.Uint8, "float8_e4m3fn"},
	"F8_E5M2":     {dtype.Uint8, "float8_e5m2"},
	"F8_E8M0":     {dtype.Uint8, "float8_e8m0fnu"},
	"F8_E4M3FNUZ": {dtype.Uint8, "float8_e4m3fnuz"},
	"F8_E5M2FNUZ": {dtype.Uint8, "float8_e5m2fnuz"},
}

// readSafetensors lists the arrays of a safetensors file: the length of a header in 8
// bytes, the header, a JSON object, and the elements.
func readSafetensors(ctx context.Context, f blob.Blob, head []byte) ([]array, error) {
	if len(head) == 0 {
		return nil, damaged(f, "the file is empty")
	}
	if len(head) < 9 || head[8] != '{' {
		if strings.HasSuffix(f.Name(), ".safetensors") {
			return nil, damaged(f, "the file does not begin with the header of safetensors")
		}
		return nil, unsupported(f, "not a safetensors, .npy or .npz file").WithHint("for Arrow files use mf.open")
	}
	n := binary.LittleEndian.Uint64(head)
	if n > uint64(f.Size()-8) {
		return nil, damaged(f, "the header has %d bytes, but only %d follow", n, f.Size()-8)
	}
	if n > maxHeader {
		return nil, unsupported(f, "the header has %d bytes, but at most %d are read", n, maxHeader).WithHint(smaller)
	}
	text := make([]byte, n)
	if err := read(ctx, f, text, 8); err != nil {
		return nil, err
	}
	header, err := jsontext.Parse(text)
	if err != nil {
		return nil, damaged(f, "the header is not JSON: %v", err)
	}
	return parseEntries(f, header, int64(8+n))
}

// parseEntries lists the arrays of a header. Start is the offset of the elements in
// the file. They fill the rest of it, as the format demands: bytes that belong to no
// array could hide anything.
func parseEntries(f blob.Blob, header jsontext.Value, start int64) ([]array, error) {
	var arrays []array
	names := map[string]bool{}
	for name, value := range header.Members() {
		if names[name] {
			return nil, damaged(f, "the header has the key %q twice", name)
		}
		names[name] = true
		if name == metadata {
			if !isStringMap(value) {
				return nil, damaged(f, "the entry %q of the header is not an object of strings", name)
			}
			continue
		}
		a, err := parseEntry(f, name, value, f.Size()-start)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	if err := checkOverlap(f, arrays); err != nil {
		return nil, err
	}
	end := int64(0)
	for _, a := range append(byOffset(arrays), array{offset: f.Size() - start}) {
		if a.offset > end {
			return nil, damaged(f, "the bytes [%d, %d) after the header belong to no array", end, a.offset)
		}
		end = a.offset + a.bytes
	}
	for i := range arrays {
		arrays[i].offset += start
	}
	return arrays, nil
}

// isStringMap reports whether a value is null, or an object of strings.
func isStringMap(value jsontext.Value) bool {
	for _, v := range value.Members() {
		if v.Kind() != jsontext.String {
			return false
		}
	}
	return value.Kind() == jsontext.Object || value.Kind() == jsontext.Null
}

// parseEntry checks an entry of a header. Space is the number of bytes after the header.
func parseEntry(f blob.Blob, name string, value jsontext.Value, space int64) (a array, err error) {
	a.name = name
	entry := map[string]jsontext.Value{}
	for key, v := range value.Members() {
		if _, twice := entry[key]; twice {
			return a, damaged(f, "the entry %q of the header has the key %q twice", name, key)
		}
		entry[key] = v
	}
	dtypeName, hasType := entry["dtype"].Text()
	offsets, hasOffsets := integers(entry["data_offsets"], 2)
	shape, hasShape := integers(entry["shape"], npy.MaxRank)
	if !hasType || !hasOffsets || len(offsets) != 2 || !hasShape {
		return a, damaged(f, "the entry %q of the header needs a dtype, a shape of at most %d dimensions, and data_offsets", name, npy.MaxRank)
	}
	begin, end := int64(offsets[0]), int64(offsets[1])
	if end < begin || end > space {
		return a, damaged(f, "array %q is at the bytes [%d, %d) of %d", name, begin, end, space)
	}
	a.stored, a.shape, a.offset, a.bytes = dtypeName, shape, begin, end-begin
	for key := range value.Members() {
		if key != "dtype" && key != "shape" && key != "data_offsets" {
			a.skipped = fmt.Sprintf("its entry in the header has the key %q, which is not known here", key)
			return a, nil
		}
	}
	e, known := elements[dtypeName]
	if !known {
		a.skipped = "arrays of the type " + dtypeName + " are not read; save them in a wider type, such as F16"
		return a, nil
	}
	a.typ, a.logical = e.typ, e.logical
	if n, ok := npy.Size(shape, a.typ.Size()); !ok || n != a.bytes {
		return a, damaged(f, "array %q of the type %s and the shape %v has %d bytes", name, dtypeName, shape, a.bytes)
	}
	return a, nil
}

// integers returns the elements of a list of integers from 0 to 2^53. Most is the largest
// length.
func integers(list jsontext.Value, most int) (out []int, ok bool) {
	if list.Kind() != jsontext.List {
		return nil, false
	}
	out = []int{}
	for v := range list.Elements() {
		n, ok := v.Int()
		if !ok || n < 0 || n > 1<<53 || len(out) == most {
			return nil, false
		}
		out = append(out, int(n))
	}
	return out, true
}

// checkOverlap returns an error if two arrays share bytes.
func checkOverlap(f blob.Blob, arrays []array) error {
	sorted := byOffset(arrays)
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; a.offset+a.bytes > b.offset {
			return damaged(f, "the arrays %q and %q share bytes", a.name, b.name)
		}
	}
	return nil
}

// byOffset returns arrays in the order of their elements; an empty array is before
// the next one.
func byOffset(arrays []array) []array {
	return slices.SortedFunc(slices.Values(arrays), func(a, b array) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.bytes, b.bytes))
	})
}

// readIndex reads an index, such as model.safetensors.index.json, and lists the
// arrays of all files that it names.
func (s *Source) readIndex(ctx context.Context, opener blob.Opener, f blob.Blob, dir string) error {
	if f.Size() > maxHeader {
		return unsupported(f, "the index has %d bytes, but at most %d are read", f.Size(), maxHeader).WithHint(smaller)
	}
	text := make([]byte, f.Size())
	if err := read(ctx, f, text, 0); err != nil {
		return err
	}
	index, err := jsontext.Parse(text)
	if err != nil {
		return damaged(f, "the index is not JSON: %v", err)
	}
	weights := index.Get("weight_map")
	if weights.Kind() != jsontext.Object {
		return damaged(f, "the index has no object \"weight_map\"")
	}
	byFile := map[string][]string{}
	order := []string{}
	names := map[string]bool{}
	for name, value := range weights.Members() {
		file, ok := value.Text()
		if !ok || !isFileName(file) {
			return damaged(f, "array %q is in the file %s, which is not a name in the directory of the index", name, bytes.TrimSpace(value))
		}
		if names[name] {
			return damaged(f, "the index has the array %q twice", name)
		}
		names[name] = true
		if byFile[file] == nil {
			order = append(order, file)
		}
		byFile[file] = append(byFile[file], name)
	}
	slices.Sort(order)
	for _, file := range order {
		if err := s.addIndexed(ctx, opener, opener.Join(dir, file), byFile[file]); err != nil {
			return err
		}
	}
	return nil
}

// isFileName reports whether a text is the name of a file, without a directory.
func isFileName(file string) bool {
	return file != "" && file != "." && file != ".." && !strings.ContainsAny(file, "/\\\x00")
}

// addIndexed adds the arrays of a file that the index assigns to it.
func (s *Source) addIndexed(ctx context.Context, opener blob.Opener, path string, names []string) error {
	f, err := s.open(ctx, opener, path)
	if err != nil {
		return err
	}
	all, err := readHeader(ctx, f)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	found := slices.DeleteFunc(all, func(a array) bool { return !wanted[a.name] })
	if len(found) < len(names) {
		for _, a := range found {
			delete(wanted, a.name)
		}
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !wanted[name] })
		return status.Errorf(status.DataLoss, "tensors", "%s: the file lacks array %q, which the index says it has", path, missing[0]).
			WithHint("fetch all files of one version again").With("path", path)
	}
	return s.add(found, len(s.files)-1)
}
