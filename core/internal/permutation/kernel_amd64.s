#include "go_asm.h"
#include "textflag.h"

// The macros compute Mix of four vectors at once: with one vector alone, the
// processor waits for each product. Y0 to Y3 hold z, Y4 to Y7 an intermediate
// value t, Y15 another.
//
// A vector multiplication takes the low 32 bits of both operands and returns all
// 64 bits of the product. With z = zh·2^32 + zl and f = fh·2^32 + fl,
//
//	z·f mod 2^64 = zl·fl + (zh·fl + zl·fh mod 2^32)·2^32
#define FACTOR1 $0xbf58476d1ce4e5b9
#define FACTOR2 $0x94d049bb133111eb

#define FACTOR1L Y8
#define FACTOR1H Y9
#define FACTOR2L Y10
#define FACTOR2H Y11

// For all four vectors: Z is z = z OP c, T is t = z OP c, TT is t = t OP c, and ZT
// is z = z OP t.
#define Z(OP, c) \
	OP c, Y0, Y0 \
	OP c, Y1, Y1 \
	OP c, Y2, Y2 \
	OP c, Y3, Y3

#define T(OP, c) \
	OP c, Y0, Y4 \
	OP c, Y1, Y5 \
	OP c, Y2, Y6 \
	OP c, Y3, Y7

#define TT(OP, c) \
	OP c, Y4, Y4 \
	OP c, Y5, Y5 \
	OP c, Y6, Y6 \
	OP c, Y7, Y7

#define ZT(OP) \
	OP Y4, Y0, Y0 \
	OP Y5, Y1, Y1 \
	OP Y6, Y2, Y2 \
	OP Y7, Y3, Y3

// CROSS adds the product of z and c to t.
#define CROSS(c, z, t) \
	VPMULUDQ c, z, Y15 \
	VPADDQ   Y15, t, t

// BROADCAST copies a register to the four lanes of a vector. half names the low
// half of the vector.
#define BROADCAST(from, half, vector) \
	VMOVQ from, half       \
	VPBROADCASTQ half, vector

// FACTORS loads the factors of Mix and their high halves.
#define FACTORS \
	MOVQ FACTOR1, AX               \
	BROADCAST(AX, X8, FACTOR1L)    \
	VPSRLQ $32, FACTOR1L, FACTOR1H \
	MOVQ FACTOR2, AX               \
	BROADCAST(AX, X10, FACTOR2L)   \
	VPSRLQ $32, FACTOR2L, FACTOR2H

// PRODUCT is z = z * f.
#define PRODUCT(fl, fh) \
	T(VPSRLQ, $32)      \
	TT(VPMULUDQ, fl)    \
	CROSS(fh, Y0, Y4)   \
	CROSS(fh, Y1, Y5)   \
	CROSS(fh, Y2, Y6)   \
	CROSS(fh, Y3, Y7)   \
	Z(VPMULUDQ, fl)     \
	TT(VPSLLQ, $32)     \
	ZT(VPADDQ)

// SHIFTED is z = z ^ z>>shift.
#define SHIFTED(shift) \
	T(VPSRLQ, shift) \
	ZT(VPXOR)

// Positions 0 to 3.
DATA iota<>+0(SB)/8, $0
DATA iota<>+8(SB)/8, $1
DATA iota<>+16(SB)/8, $2
DATA iota<>+24(SB)/8, $3
GLOBL iota<>(SB), RODATA|NOPTR, $32

// func splitAVX2(l, r *[lanes]uint64, b, h, t uint64)
//
// It computes the halves of the elements. When t + j reaches b, the next row of
// the rectangle begins.
TEXT ·splitAVX2(SB), NOSPLIT, $0-40
	MOVQ l+0(FP), DI
	MOVQ r+8(FP), SI
	MOVQ b+16(FP), AX
	BROADCAST(AX, X4, Y4)
	DECQ AX
	BROADCAST(AX, X5, Y5)
	MOVQ h+24(FP), AX
	BROADCAST(AX, X6, Y6)
	MOVQ t+32(FP), AX
	BROADCAST(AX, X0, Y0)
	VPADDQ iota<>(SB), Y0, Y0
	MOVQ $4, AX
	BROADCAST(AX, X7, Y7)
	XORQ DX, DX

split:
	VPCMPGTQ Y5, Y0, Y1
	VPSUBQ Y1, Y6, Y2
	VPAND Y4, Y1, Y1
	VPSUBQ Y1, Y0, Y1
	VMOVDQU Y2, (DI)(DX*1)
	VMOVDQU Y1, (SI)(DX*1)
	VPADDQ Y7, Y0, Y0
	ADDQ $32, DX
	CMPQ DX, $(8*const_lanes)
	JLT  split
	VZEROUPPER
	RET

// The rounds take sixteen positions at a time.
//
// DI halves that change      R8 their modulus m      BX key of the round
// SI halves that are hashed  R9 the other modulus    CX rounds left
// DX offset of the sixteen   R10 low half of FACTOR1
//
// Each step needs the product with a modulus, div 2^64. With z = zh·2^32 + zl,
//
//	z·m div 2^64 = (zh·m + (zl·m div 2^32)) div 2^32      for m below 2^32
#define KEY     Y12
#define FIXED   Y13
#define MODULUS Y14

// func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64)
TEXT ·roundsAVX2(SB), NOSPLIT, $0-40
	MOVQ l+0(FP), DI
	MOVQ r+8(FP), SI
	MOVQ keys+16(FP), BX
	MOVQ a+24(FP), R8
	MOVQ b+32(FP), R9
	MOVQ $const_rounds, CX

	MOVQ FACTOR1, R10
	MOVL R10, R10
	FACTORS

	// A half has at most 30 bits. So the first step of Mix, z ^ z>>30 of
	// z = half ^ key, is half ^ (key ^ key>>30). Its upper 32 bits are those of
	// the key, and their part of the product is the same for all positions.
round:
	MOVQ (BX), AX
	MOVQ AX, DX
	SHRQ $30, DX
	XORQ DX, AX
	BROADCAST(AX, X12, KEY)
	SHRQ $32, AX
	IMULQ R10, AX
	SHLQ $32, AX
	BROADCAST(AX, X13, FIXED)
	BROADCAST(R8, X14, MODULUS)
	XORQ DX, DX

sixteen:
	// z = (half ^ key) * FACTOR1
	VPXOR (SI)(DX*1), KEY, Y0
	VPXOR 32(SI)(DX*1), KEY, Y1
	VPXOR 64(SI)(DX*1), KEY, Y2
	VPXOR 96(SI)(DX*1), KEY, Y3
	T(VPMULUDQ, FACTOR1H)
	Z(VPMULUDQ, FACTOR1L)
	TT(VPSLLQ, $32)
	Z(VPADDQ, FIXED)
	ZT(VPADDQ)

	// z = (z ^ z>>27) * FACTOR2
	SHIFTED($27)
	PRODUCT(FACTOR2L, FACTOR2H)

	// z = (z ^ z>>31) * m div 2^64
	SHIFTED($31)
	T(VPSRLQ, $32)
	Z(VPMULUDQ, MODULUS)
	TT(VPMULUDQ, MODULUS)
	Z(VPSRLQ, $32)
	ZT(VPADDQ)
	Z(VPSRLQ, $32)

	// The other half plus z is below 2m. Modulo m, it is the lesser of z and
	// z - m, because a negative z - m wraps around.
	VPADDQ (DI)(DX*1), Y0, Y0
	VPADDQ 32(DI)(DX*1), Y1, Y1
	VPADDQ 64(DI)(DX*1), Y2, Y2
	VPADDQ 96(DI)(DX*1), Y3, Y3
	T(VPSUBQ, MODULUS)
	ZT(VPMINUD)
	VMOVDQU Y0, (DI)(DX*1)
	VMOVDQU Y1, 32(DI)(DX*1)
	VMOVDQU Y2, 64(DI)(DX*1)
	VMOVDQU Y3, 96(DI)(DX*1)

	ADDQ $128, DX
	CMPQ DX, $(8*const_lanes)
	JLT  sixteen

	XCHGQ DI, SI
	XCHGQ R8, R9
	ADDQ $8, BX
	DECQ CX
	JNE  round
	VZEROUPPER
	RET

// func joinAVX2(dst *[lanes]int64, l, r *[lanes]uint64, b, n uint64) (outside bool)
//
// It computes the elements of the halves, and whether one is at n or beyond.
TEXT ·joinAVX2(SB), NOSPLIT, $0-41
	MOVQ dst+0(FP), BX
	MOVQ l+8(FP), DI
	MOVQ r+16(FP), SI
	MOVQ b+24(FP), AX
	BROADCAST(AX, X4, Y4)
	MOVQ n+32(FP), AX
	DECQ AX
	BROADCAST(AX, X5, Y5)
	VPXOR Y6, Y6, Y6
	XORQ DX, DX

join:
	VPMULUDQ (DI)(DX*1), Y4, Y0
	VPADDQ (SI)(DX*1), Y0, Y0
	VMOVDQU Y0, (BX)(DX*1)
	VPCMPGTQ Y5, Y0, Y1
	VPOR Y1, Y6, Y6
	ADDQ $32, DX
	CMPQ DX, $(8*const_lanes)
	JLT  join
	VMOVMSKPD Y6, AX
	TESTL AX, AX
	SETNE outside+40(FP)
	VZEROUPPER
	RET
