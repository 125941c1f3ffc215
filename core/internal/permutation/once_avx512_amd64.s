#include "go_asm.h"
#include "textflag.h"
#include "mix_avx512_amd64.h"

// All 64 elements at once, in registers from the first round to the last.
//
// Z0, Z1 scratch   Z8 to Z15 halves l, modulo a   Z16 to Z23 halves r, modulo b
//
// The steps are those of roundsAVX2.
#define KEY   Z26
#define MIXED Z27
#define A     Z28
#define B     Z29

// NEXTKEY takes the key of the next round, with the first step of Mix done.
#define NEXTKEY \
	VPBROADCASTQ (BX), KEY \
	ADDQ $8, BX            \
	SHIFTED($30, KEY, MIXED)

// ADD adds a hash of eight halves y to x, modulo m. All uses share the scratch:
// the processor renames it, and works at several of them together.
#define ADD(x, y, m) \
	VPXORQ KEY, y, Z0   \
	MIX(Z0, Z1)         \
	VPSRLQ $32, Z0, Z1  \
	VPMULUDQ m, Z0, Z0  \
	VPMULUDQ m, Z1, Z1  \
	VPSRLQ $32, Z0, Z0  \
	VPADDQ Z1, Z0, Z0   \
	VPSRLQ $32, Z0, Z0  \
	VPADDQ Z0, x, x     \
	VPSUBQ m, x, Z0     \
	VPMINUD Z0, x, x

// SPLIT sets the halves l and r of eight elements that follow each other: where
// r reaches b, the next row of the rectangle begins. Z0 holds the r of the first
// row, Z1 l and Z2 what is to be added to go to the next eight, Z3 minus one.
#define SPLIT(l, r) \
	VMOVDQA64 Z1, l         \
	VMOVDQA64 Z0, r         \
	VPADDQ Z2, Z0, Z0       \
	VPCMPUQ $5, B, r, K1    \
	VPSUBQ Z3, l, K1, l     \
	VPSUBQ B, r, K1, r

// JOIN stores l·b + r, and collects in K2 where an element lies at n or beyond.
#define JOIN(l, r, at) \
	VPMULUDQ B, l, l        \
	VPADDQ r, l, l          \
	VMOVDQU64 l, at(DI)     \
	VPCMPUQ $5, Z0, l, K1   \
	KORB K1, K2, K2

// func onceAVX512(dst *[lanes]int64, keys *[rounds]uint64, a, b, n, h, t uint64) (outside bool)
TEXT ·onceAVX512(SB), NOSPLIT, $0-57
	MOVQ dst+0(FP), DI
	MOVQ keys+8(FP), BX
	VPBROADCASTQ a+16(FP), A
	VPBROADCASTQ b+24(FP), B
	FACTORS

	VPBROADCASTQ h+40(FP), Z1
	VPBROADCASTQ t+48(FP), Z0
	VPADDQ iota8<>(SB), Z0, Z0
	MOVQ $8, AX
	VPBROADCASTQ AX, Z2
	VPTERNLOGQ $0xff, Z3, Z3, Z3
	SPLIT(Z8, Z16)
	SPLIT(Z9, Z17)
	SPLIT(Z10, Z18)
	SPLIT(Z11, Z19)
	SPLIT(Z12, Z20)
	SPLIT(Z13, Z21)
	SPLIT(Z14, Z22)
	SPLIT(Z15, Z23)

	MOVQ $(const_rounds/2), CX

round:
	NEXTKEY
	ADD(Z8, Z16, A)
	ADD(Z9, Z17, A)
	ADD(Z10, Z18, A)
	ADD(Z11, Z19, A)
	ADD(Z12, Z20, A)
	ADD(Z13, Z21, A)
	ADD(Z14, Z22, A)
	ADD(Z15, Z23, A)
	NEXTKEY
	ADD(Z16, Z8, B)
	ADD(Z17, Z9, B)
	ADD(Z18, Z10, B)
	ADD(Z19, Z11, B)
	ADD(Z20, Z12, B)
	ADD(Z21, Z13, B)
	ADD(Z22, Z14, B)
	ADD(Z23, Z15, B)
	DECQ CX
	JNE  round

	VPBROADCASTQ n+32(FP), Z0
	KXORB K2, K2, K2
	JOIN(Z8, Z16, 0)
	JOIN(Z9, Z17, 64)
	JOIN(Z10, Z18, 128)
	JOIN(Z11, Z19, 192)
	JOIN(Z12, Z20, 256)
	JOIN(Z13, Z21, 320)
	JOIN(Z14, Z22, 384)
	JOIN(Z15, Z23, 448)
	KORTESTB K2, K2
	SETNE outside+56(FP)
	VZEROUPPER
	RET
