package table

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasKernels reports whether this processor runs the assembly kernels.
func hasKernels() bool { return cpu.X86.HasAVX2 && cpu.X86.HasBMI2 }

// withinFast looks at the front of the records eight at a time, and gives how
// many it looked at, or -1 if one of them lies outside [0, last].
func withinFast(records []int64, last int64) int {
	if !hasKernels() || len(records) < 8 {
		return 0
	}
	return withinAVX2(&records[0], len(records), last)
}

// callRows bounds a call of a kernel, since assembly cannot be preempted: a
// collection waits for it.
const callRows = 4096

// copyFast copies elements of 4 or 8 bytes that lie one after the other in
// every record batch. It is false where that is not so, or the index has no
// quick way to places.
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

// kernel chooses the kernel that finds the places of records, nil if there is
// none.
func (e *elements) kernel(size int) func(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index) {
	list := [...]func(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index){single4, divided4, sought4}
	if size == 8 {
		list = [...]func(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index){single8, divided8, sought8}
	}
	switch x := e.index; {
	case size != 4 && size != 8:
		return nil
	case x.places() == 1:
		return list[0]
	case x.inverse != 0:
		return list[1]
	case x.exact:
		return list[2]
	}
	return nil
}

//go:noescape
func withinAVX2(records *int64, n int, last int64) int

//go:noescape
func single4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func single8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func divided4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func divided8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func sought4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)

//go:noescape
func sought8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
