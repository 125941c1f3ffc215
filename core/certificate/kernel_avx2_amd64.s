#include "go_asm.h"
#include "textflag.h"
#include "../internal/permutation/mix_amd64.h"

// Eight records at a time: Y0 and Y1 hold what becomes the high halves of their
// hashes, Y2 and Y3 the low halves. Y12 to Y14 are the sums.

// KEYS stores the keys of the first eight positions, and how far those of the
// next eight are from them.
#define KEYS(key, step, at, more) \
	MOVQ step, AX          \
	MOVQ key, BX           \
	MOVQ BX, at+0(SP)      \
	ADDQ AX, BX            \
	MOVQ BX, at+8(SP)      \
	ADDQ AX, BX            \
	MOVQ BX, at+16(SP)     \
	ADDQ AX, BX            \
	MOVQ BX, at+24(SP)     \
	ADDQ AX, BX            \
	MOVQ BX, at+32(SP)     \
	ADDQ AX, BX            \
	MOVQ BX, at+40(SP)     \
	ADDQ AX, BX            \
	MOVQ BX, at+48(SP)     \
	ADDQ AX, BX            \
	MOVQ BX, at+56(SP)     \
	SHLQ $3, AX            \
	BROADCAST(AX, X0, Y0)  \
	VMOVDQU Y0, more(SP)

// NEXT goes on to the keys of the next four positions.
#define NEXT(at, more, y) \
	VMOVDQU at(SP), y      \
	VPADDQ more(SP), y, y  \
	VMOVDQU y, at(SP)

// TIMES is z = z * (a constant of which both halves are in the frame).
#define TIMES(z, t) \
	VPSRLQ $32, z, t            \
	VPMULUDQ 192(SP), t, t      \
	VPMULUDQ 224(SP), z, Y15    \
	VPADDQ Y15, t, t            \
	VPSLLQ $32, t, t            \
	VPMULUDQ 192(SP), z, z      \
	VPADDQ t, z, z

// func countAVX2(s *sums, records *int64, n int, high, low uint64) (padded bool)
//
// Frame: keys of the high halves at 0, of the low halves at 64, what is added
// to them at 128 and 160; at 192 and 224 the multiplier of the record.
TEXT ·countAVX2(SB), NOSPLIT, $256-41
	MOVQ records+8(FP), SI
	MOVQ n+16(FP), CX
	KEYS(high+24(FP), $const_stepHigh, 0, 128)
	KEYS(low+32(FP), $const_stepLow, 64, 160)
	MOVQ $const_stepRecord, AX
	BROADCAST(AX, X0, Y0)
	VMOVDQU Y0, 192(SP)
	VPSRLQ $32, Y0, Y0
	VMOVDQU Y0, 224(SP)
	FACTORS
	VPXOR Y12, Y12, Y12
	VPXOR Y13, Y13, Y13
	VPXOR Y14, Y14, Y14
	XORQ DX, DX

eight:
	SUBQ $8, CX
	JLT  done
	VMOVDQU (SI), Y2
	VMOVDQU 32(SI), Y3
	ADDQ $64, SI
	VPOR Y2, Y3, Y15
	VMOVMSKPD Y15, AX
	ORQ  AX, DX
	VPXOR 0(SP), Y2, Y0
	VPXOR 32(SP), Y3, Y1
	TIMES(Y2, Y6)
	TIMES(Y3, Y7)
	VPADDQ 64(SP), Y2, Y2
	VPADDQ 96(SP), Y3, Y3
	NEXT(0, 128, Y4)
	NEXT(32, 128, Y5)
	NEXT(64, 160, Y6)
	NEXT(96, 160, Y7)
	SHIFTED($30)
	PRODUCT(FACTOR1L, FACTOR1H)
	SHIFTED($27)
	PRODUCT(FACTOR2L, FACTOR2H)
	SHIFTED($31)
	VPADDQ Y0, Y12, Y12
	VPADDQ Y1, Y12, Y12
	VPADDQ Y2, Y13, Y13
	VPADDQ Y3, Y13, Y13
	VPSRLQ $32, Y2, Y2
	VPSRLQ $32, Y3, Y3
	VPADDQ Y2, Y14, Y14
	VPADDQ Y3, Y14, Y14
	JMP  eight

done:
	MOVQ s+0(FP), DI
	VMOVDQU Y12, (DI)
	VMOVDQU Y13, 32(DI)
	VMOVDQU Y14, 64(DI)
	TESTQ DX, DX
	SETNE padded+40(FP)
	VZEROUPPER
	RET
