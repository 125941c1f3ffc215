// clang-format off: this is Go's assembly.

// What the AVX-512 kernels share that compute Mix, here and in package
// certificate. A vector holds eight values; products are whole ones of 64 bits.
#define FACTOR1 Z30
#define FACTOR2 Z31

// FACTORS loads the factors of Mix.
#define FACTORS \
	MOVQ $0xbf58476d1ce4e5b9, AX \
	VPBROADCASTQ AX, FACTOR1     \
	MOVQ $0x94d049bb133111eb, AX \
	VPBROADCASTQ AX, FACTOR2

// SHIFTED is z = z ^ z>>shift.
#define SHIFTED(shift, z, t) \
	VPSRLQ shift, z, t \
	VPXORQ t, z, z

// MIX is all of Mix but its first step, SHIFTED($30).
#define MIX(z, t) \
	VPMULLQ FACTOR1, z, z \
	SHIFTED($27, z, t)    \
	VPMULLQ FACTOR2, z, z \
	SHIFTED($31, z, t)

// Numbers 0 to 7.
DATA iota8<>+0(SB)/8, $0
DATA iota8<>+8(SB)/8, $1
DATA iota8<>+16(SB)/8, $2
DATA iota8<>+24(SB)/8, $3
DATA iota8<>+32(SB)/8, $4
DATA iota8<>+40(SB)/8, $5
DATA iota8<>+48(SB)/8, $6
DATA iota8<>+56(SB)/8, $7
GLOBL iota8<>(SB), RODATA|NOPTR, $64
