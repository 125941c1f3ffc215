package permutation

import (
	"testing"

	xcpu "golang.org/x/sys/cpu"
)

// The answer is that of golang.org/x/sys, which has code of its own.
func TestHaveKernel(t *testing.T) {
	if got := haveKernel(); got != xcpu.X86.HasAVX2 {
		t.Errorf("the kernel is used: %t, want %t", got, xcpu.X86.HasAVX2)
	}
}

// AVX2 is absent without any of its bits, of the processor or of the system.
func TestHaveAVX2(t *testing.T) {
	with := func(last, leaf1, leaf7, saved uint32) bool {
		return haveAVX2(func(leaf, _ uint32) (a, b, c, d uint32) {
			switch leaf {
			case 0:
				return last, 0, 0, 0
			case 1:
				return 0, 0, leaf1, 0
			default:
				return 0, leaf7, 0, 0
			}
		}, func() uint32 {
			if leaf1&(1<<27) == 0 {
				t.Error("xgetbv is called on a processor without it")
			}
			return saved
		})
	}
	const all = 1<<32 - 1
	if !with(7, all, all, all) || with(6, all, all, all) {
		t.Error("AVX2 depends on leaf 7 otherwise than expected")
	}
	for bit := range 32 {
		without := uint32(all) &^ (1 << bit)
		if got, want := with(7, without, all, all), bit != 27 && bit != 28; got != want {
			t.Errorf("without bit %d of leaf 1: %t, want %t", bit, got, want)
		}
		if got, want := with(7, all, without, all), bit != 5; got != want {
			t.Errorf("without bit %d of leaf 7: %t, want %t", bit, got, want)
		}
		if got, want := with(7, all, all, without), bit != 1 && bit != 2; got != want {
			t.Errorf("without bit %d of the saved registers: %t, want %t", bit, got, want)
		}
	}
}
