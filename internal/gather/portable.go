package gather

import "unsafe"

// portable copies in plain Go. It is the kernel of processors without assembly
// kernels, and the reference of their tests.
func (c copier) portable() {
	for i, row := range c.rows {
		dst := c.dst[i*c.width:]
		for k := range c.count {
			copy(dst[k*c.run:(k+1)*c.run], view(row+c.src+uintptr(k*c.stride), c.run))
		}
	}
}

// view returns the n bytes at an address outside Go's stacks. The double
// conversion tells vet that it is intended: the memory is a mapping's, C's, or
// kept alive by the caller.
func view(address uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}
