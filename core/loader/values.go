package loader

import (
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// Values returns the elements of an array of a batch, in C order, without a copy. The
// array's Block in b.Blocks has its shape. The elements must not be changed, and
// not be used after Release.
//
// T is the type of the elements, or uint16 for the bits of float16 and bfloat16. The
// process must hold the array in one block, as on a mesh of one device; otherwise use
// [BlockValues]. The error is InvalidArgument for another type and for several blocks,
// NotFound for an unknown array, DataLoss for a boolean that is not 0 or 1, and
// InvalidState after Release.
func Values[T dtype.Element](b *batch.Batch, array string) ([]T, error) {
	if b == nil {
		return nil, noBatch()
	}
	named := func(block batch.Block) bool { return block.Name == array }
	i := slices.IndexFunc(b.Blocks(), named)
	if i < 0 {
		return nil, fail(status.NotFound, "the batch has no array %q in this process", array).WithHint("it has %q", arraysOf(b.Blocks()))
	}
	if n := len(slices.DeleteFunc(slices.Clone(b.Blocks()), func(block batch.Block) bool { return !named(block) })); n > 1 {
		return nil, fail(status.InvalidArgument, "this process holds array %q in %d blocks, one for each part of it", array, n).
			WithHint("read each block by BlockValues; Batch.Blocks lists them")
	}
	return BlockValues[T](b, i)
}

// BlockValues is Values for Blocks()[block] of a batch: the part of an array that some
// devices hold. For another block the error is OutOfRange.
func BlockValues[T dtype.Element](b *batch.Batch, block int) ([]T, error) {
	if b == nil {
		return nil, noBatch()
	}
	bytes, err := b.Bytes(block)
	if err != nil {
		return nil, err
	}
	typ, as := b.Blocks()[block].Type, dtype.Of[T]()
	if want := goType(typ); as != want {
		return nil, fail(status.InvalidArgument, "array %q has elements of type %v, which are read as %v, not %v", b.Blocks()[block].Name, typ, want, as)
	}
	if typ == dtype.Bool {
		if i := slices.IndexFunc(bytes, func(b byte) bool { return b > 1 }); i >= 0 {
			return nil, fail(status.DataLoss, "element %d of array %q is the byte %d, which is not a boolean", i, b.Blocks()[block].Name, bytes[i]).WithHint("store booleans as 0 and 1")
		}
	}
	data := unsafe.Pointer(unsafe.SliceData(bytes))
	if uintptr(data)%uintptr(typ.Size()) != 0 {
		return nil, fail(status.Unsupported, "the allocator has placed %v elements at an address that is not a multiple of %d", typ, typ.Size()).
			WithHint("align the blocks of its memory to batch.Align")
	}
	return unsafe.Slice((*T)(data), len(bytes)/typ.Size()), nil
}

func noBatch() error {
	return fail(status.InvalidArgument, "there is no batch").WithHint("give the batch of a call without an error; Next returns nil with one")
}

// goType returns the type of Go that holds elements.
func goType(t dtype.Type) dtype.Type {
	if t == dtype.Float16 || t == dtype.BFloat16 {
		return dtype.Uint16
	}
	return t
}

// arraysOf returns the names of the arrays in blocks, each once.
func arraysOf(blocks []batch.Block) (names []string) {
	for _, b := range blocks {
		if !slices.Contains(names, b.Name) {
			names = append(names, b.Name)
		}
	}
	return names
}
