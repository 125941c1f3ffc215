#include "textflag.h"

// The kernels convert 8-byte elements to 4-byte elements, eight per step. Each
// returns the number of elements that it converted, a multiple of eight. It stops
// before a step with an element that does not fit.

// NARROW packs the low halves of the elements at SI, widens them again with
// EXTEND, and compares.
#define NARROW(EXTEND, loop, done) \
	MOVQ dst+0(FP), DI             \
	MOVQ src+8(FP), SI             \
	MOVQ n+16(FP), CX              \
	XORQ AX, AX                    \
	SUBQ $8, CX                    \
loop: \
	CMPQ AX, CX                    \
	JGT  done                      \
	VMOVDQU (SI)(AX*8), Y0         \
	VMOVDQU 32(SI)(AX*8), Y1       \
	VEXTRACTI128 $1, Y0, X2        \
	VEXTRACTI128 $1, Y1, X3        \
	VSHUFPS $0x88, X2, X0, X4      \
	VSHUFPS $0x88, X3, X1, X5      \
	EXTEND X4, Y6                  \
	EXTEND X5, Y7                  \
	VPXOR Y0, Y6, Y6               \
	VPXOR Y1, Y7, Y7               \
	VPOR  Y6, Y7, Y7               \
	VPTEST Y7, Y7                  \
	JNE  done                      \
	VMOVDQU X4, (DI)(AX*4)         \
	VMOVDQU X5, 16(DI)(AX*4)       \
	ADDQ $8, AX                    \
	JMP  loop                      \
done: \
	MOVQ AX, ret+24(FP)            \
	VZEROUPPER                     \
	RET

// func narrowIntsAVX2(dst, src *byte, n int) int
TEXT ·narrowIntsAVX2(SB), NOSPLIT, $0-32
	NARROW(VPMOVSXDQ, loop, done)

// func narrowUintsAVX2(dst, src *byte, n int) int
TEXT ·narrowUintsAVX2(SB), NOSPLIT, $0-32
	NARROW(VPMOVZXDQ, loop, done)

// func narrowFloatsAVX2(dst, src *byte, n int) int
TEXT ·narrowFloatsAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ AX, AX
	SUBQ $8, CX

loop:
	CMPQ AX, CX
	JGT  done
	VCVTPD2PSY (SI)(AX*8), X0
	VCVTPD2PSY 32(SI)(AX*8), X1
	VMOVDQU X0, (DI)(AX*4)
	VMOVDQU X1, 16(DI)(AX*4)
	ADDQ $8, AX
	JMP  loop

done:
	MOVQ AX, ret+24(FP)
	VZEROUPPER
	RET
