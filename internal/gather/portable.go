package gather

import "unsafe"

// portable copies with plain Go: the kernel of processors without an assembly
// one, and what the assembly is tested against.
func (c copier) portable() {
	for i, row := range c.rows {
		dst := c.dst[i*c.width:]
		for k := range c.count {
			copy(dst[k*c.run:(k+1)*c.run], view(row+c.src+uintptr(k*c.stride), c.run))
		}
	}
}

// view gives the n bytes at an address outside Go's stacks. The detour tells
// vet that the conversion is meant: the memory is a mapping's, C's, or kept
// alive by the caller.
func view(address uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}
