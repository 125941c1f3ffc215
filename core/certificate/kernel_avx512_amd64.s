#include "go_asm.h"
#include "textflag.h"
#include "../internal/permutation/mix_avx512_amd64.h"

// Eight records at a time, of which the next eight do not have to wait.
//
// Z8 keys of the high halves    Z10 multiplier of the record   Z13 to Z15 sums
// Z9 keys of the low halves     Z16 records so far, or-ed
// Z17, Z18 what the keys of the next eight positions are further on

// KEYS sets the keys of the first eight positions, and how far those of the
// next eight are from them.
#define KEYS(key, step, z, more) \
	MOVQ step, AX             \
	VPBROADCASTQ AX, more     \
	VPMULLQ iota8<>(SB), more, z \
	VPBROADCASTQ key, Z0      \
	VPADDQ Z0, z, z           \
	VPSLLQ $3, more, more

// FOLD stores the sum of both halves of a vector.
#define FOLD(z, y, at) \
	VEXTRACTI64X4 $1, z, Y0 \
	VPADDQ Y0, y, Y0        \
	VMOVDQU Y0, at(DI)

// func countAVX512(s *sums, records *int64, n int, high, low uint64) (padded bool)
TEXT ·countAVX512(SB), NOSPLIT, $0-41
	MOVQ s+0(FP), DI
	MOVQ records+8(FP), SI
	MOVQ n+16(FP), CX
	KEYS(high+24(FP), $const_stepHigh, Z8, Z17)
	KEYS(low+32(FP), $const_stepLow, Z9, Z18)
	MOVQ $const_stepRecord, AX
	VPBROADCASTQ AX, Z10
	FACTORS
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15
	VPXORQ Z16, Z16, Z16

eight:
	VMOVDQU64 (SI), Z0
	ADDQ $64, SI
	VPORQ Z0, Z16, Z16
	VPXORQ Z8, Z0, Z1
	VPMULLQ Z10, Z0, Z2
	VPADDQ Z9, Z2, Z2
	VPADDQ Z17, Z8, Z8
	VPADDQ Z18, Z9, Z9
	SHIFTED($30, Z1, Z3)
	MIX(Z1, Z3)
	SHIFTED($30, Z2, Z4)
	MIX(Z2, Z4)
	VPADDQ Z1, Z13, Z13
	VPADDQ Z2, Z14, Z14
	VPSRLQ $32, Z2, Z2
	VPADDQ Z2, Z15, Z15
	SUBQ $8, CX
	JGT  eight

	FOLD(Z13, Y13, 0)
	FOLD(Z14, Y14, 32)
	FOLD(Z15, Y15, 64)
	VPMOVQ2M Z16, K1
	KORTESTB K1, K1
	SETNE padded+40(FP)
	VZEROUPPER
	RET
