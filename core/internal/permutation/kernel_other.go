//go:build !amd64

package permutation

func haveKernel() bool { return false }

func (f *feistel) onceKernel(dst *[lanes]int64, h, t uint64) (outside bool) {
	return f.oncePortable(dst, h, t)
}
