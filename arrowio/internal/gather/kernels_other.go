//go:build !amd64

package gather

// lockstep is empty where there are no assembly kernels.
type lockstep struct{ streaming bool }

func (*lockstep) flush() {}

func hasKernels() bool { return false }

func (c copier) native(*lockstep, []uintptr) { c.portable() }

func (Conversion) fast() func(dst, src *byte, n int) int { return nil }
