package cpu

import "sync"

// Best gives the highest level that may be used. It asks once: on a virtual
// machine, each question is answered by the host.
var Best = sync.OnceValue(func() Level { return level(cpuid, xgetbv) })

// Bits of the answers: Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapters 13.2, 14.7.1 and 15.2.
const (
	leaf1C    = 1<<27 | 1<<28                 // the system saves registers as xgetbv says; AVX
	savedYMM  = 1<<1 | 1<<2                   // both halves
	savedZMM  = savedYMM | 1<<5 | 1<<6 | 1<<7 // masks, upper halves, upper registers
	leaf7AVX2 = 1 << 5                        // AVX2
	leaf7Wide = 1<<16 | 1<<17 | 1<<21 | 1<<30 // AVX-512 F, DQ, IFMA, BW
)

// level asks for AVX-512's IFMA too, which no kernel uses: processors that have
// AVX-512 without it, Skylake's, clock down for milliseconds after one wide
// product, and all else on the core with them.
func level(cpuid func(leaf, subleaf uint32) (a, b, c, d uint32), xgetbv func() uint32) Level {
	if last, _, _, _ := cpuid(0, 0); last < 7 {
		return None
	}
	if _, _, c, _ := cpuid(1, 0); c&leaf1C != leaf1C {
		return None
	}
	_, b, _, _ := cpuid(7, 0)
	switch saved := xgetbv(); {
	case saved&savedYMM != savedYMM || b&leaf7AVX2 == 0:
		return None
	case saved&savedZMM != savedZMM || b&leaf7Wide != leaf7Wide:
		return AVX2
	default:
		return AVX512
	}
}

// cpuid asks the processor about itself.
func cpuid(leaf, subleaf uint32) (a, b, c, d uint32)

// xgetbv gives the low half of XCR0: which registers the system saves.
func xgetbv() uint32
