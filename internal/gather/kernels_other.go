//go:build !amd64

package gather

func hasKernels() bool { return false }

func (c copier) native(bool, []uintptr) { c.portable() }

func (Conversion) fast() func(dst, src *byte, n int) int { return nil }
