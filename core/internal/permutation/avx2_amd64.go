package permutation

import "sync"

// haveKernel reports whether this machine runs AVX2. It asks once: on a virtual
// machine, the host answers each question.
var haveKernel = sync.OnceValue(func() bool { return haveAVX2(cpuid, xgetbv) })

// Bits of the answers: Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapters 13.2 and 14.7.1.
const (
	leaf1C    = 1<<27 | 1<<28 // the system saves the registers of xgetbv; AVX
	leaf7AVX2 = 1 << 5
	savedYMM  = 1<<1 | 1<<2 // the system saves both halves of the vectors
)

func haveAVX2(cpuid func(leaf, subleaf uint32) (a, b, c, d uint32), xgetbv func() uint32) bool {
	if last, _, _, _ := cpuid(0, 0); last < 7 {
		return false
	}
	if _, _, c, _ := cpuid(1, 0); c&leaf1C != leaf1C {
		return false // xgetbv may not exist
	}
	_, b, _, _ := cpuid(7, 0)
	return xgetbv()&savedYMM == savedYMM && b&leaf7AVX2 != 0
}

// cpuid executes the instruction of this name.
func cpuid(leaf, subleaf uint32) (a, b, c, d uint32)

// xgetbv returns the low half of XCR0: the registers that the system saves.
func xgetbv() uint32
