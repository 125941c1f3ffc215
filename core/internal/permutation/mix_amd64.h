// clang-format off: this is Go's assembly.

// What the AVX2 kernels share that compute Mix, here and in package certificate.
// They take four vectors side by side, since one alone leaves the processor
// waiting for each product. Y0 to Y3 hold z, Y4 to Y7 an intermediate value t,
// Y15 another.
//
// The vector multiplication takes the low 32 bits of both operands and gives
// all 64 bits of the product. With z = zh·2^32 + zl and f = fh·2^32 + fl,
//
//	z·f mod 2^64 = zl·fl + (zh·fl + zl·fh mod 2^32)·2^32
#define FACTOR1 $0xbf58476d1ce4e5b9
#define FACTOR2 $0x94d049bb133111eb

#define FACTOR1L Y8
#define FACTOR1H Y9
#define FACTOR2L Y10
#define FACTOR2H Y11

// Z is z = z OP c, for all four vectors; T is t = z OP c, TT is t = t OP c and
// ZT is z = z OP t.
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

// BROADCAST sets the four lanes of a vector, whose low half is half.
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
