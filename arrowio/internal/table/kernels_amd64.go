package table

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasKernels reports whether this processor runs the assembly kernels.
func hasKernels() bool { return cpu.X86.HasAVX2 && cpu.X86.HasBMI2 }

// callRows bounds a call of a kernel. Assembly cannot be preempted, so a garbage
// collection waits for it.
const callRows = 4096

// copyFast copies elements of 4 to 32 bytes that lie one after the other in
// every record batch. It is false if they do not, or if the sizes of the batches
// differ: then one list of entries serves all fields.
func copyFast(dst unsafe.Pointer, size int, e elements) bool {
	kernel := e.kernel(size)
	if kernel == nil || !hasKernels() || e.stride != uintptr(size) {
		return false
	}
	for from := 0; from < len(e.records); from += callRows {
		n := min(callRows, len(e.records)-from)
		kernel(unsafe.Add(dst, from*size), &e.records[from], n, &e.origin[0], e.index)
	}
	return true
}

type kernel func(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

// kernels by size of an element, then by the way to the entries of records.
var kernels = map[int][2]kernel{
	4:  {single4, divided4},
	8:  {single8, divided8},
	16: {single16, divided16},
	32: {single32, divided32},
}

// kernel chooses the kernel that finds the entries of records, nil if there is
// none.
func (e *elements) kernel(size int) kernel {
	list := kernels[size]
	switch x := e.index; {
	case x.entries() == 1:
		return list[0]
	case x.inverse != 0:
		return list[1]
	}
	return nil
}

//go:noescape
func single4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func single8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func single16(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func single32(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func divided4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func divided8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func divided16(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func divided32(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
