#include "textflag.h"

// The comments of the functions are in the Go file that declares them.

// func prefetch(from uintptr, bytes int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ from+0(FP), AX
	MOVQ bytes+8(FP), CX
	ADDQ AX, CX
	ANDQ $~63, AX // the line of the first byte
	SUBQ AX, CX   // bytes from there to the end

line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	SUBQ $64, CX
	JGT  line
	RET

// func copyRows(dst *byte, rows *uintptr, n int, src uintptr, run, width, ahead int)
//
// SI address of the row's address    DI destination   CX rows left
// AX source    BX the later row      R8 src           R9 run
// R10 width    R11 ahead             R14 offset       R15 offset of the last 64 bytes
TEXT ·copyRows(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ src+24(FP), R8
	MOVQ run+32(FP), R9
	MOVQ width+40(FP), R10
	MOVQ ahead+48(FP), R11
	LEAQ -64(R9), R15

row:
	MOVQ (SI)(R11*8), BX
	ADDQ R8, BX
	PREFETCHT0 -1(BX)(R9*1)
	MOVQ (SI), AX
	ADDQ R8, AX
	XORQ R14, R14

bytes:
	PREFETCHT0 (BX)(R14*1)
	MOVOU (AX)(R14*1), X0
	MOVOU 16(AX)(R14*1), X1
	MOVOU 32(AX)(R14*1), X2
	MOVOU 48(AX)(R14*1), X3
	MOVOU X0, (DI)(R14*1)
	MOVOU X1, 16(DI)(R14*1)
	MOVOU X2, 32(DI)(R14*1)
	MOVOU X3, 48(DI)(R14*1)
	ADDQ $64, R14
	CMPQ R14, R15
	JLT  bytes

	PREFETCHT0 (BX)(R15*1)
	MOVOU (AX)(R15*1), X0
	MOVOU 16(AX)(R15*1), X1
	MOVOU 32(AX)(R15*1), X2
	MOVOU 48(AX)(R15*1), X3
	MOVOU X0, (DI)(R15*1)
	MOVOU X1, 16(DI)(R15*1)
	MOVOU X2, 32(DI)(R15*1)
	MOVOU X3, 48(DI)(R15*1)

	ADDQ $8, SI
	ADDQ R10, DI
	DECQ CX
	JNE  row
	RET

// func streamLines(dst, src *byte, lines int)
TEXT ·streamLines(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ lines+16(FP), CX

line:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVNTO X0, (DI) // a store that bypasses the cache
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNE  line
	RET

// func endStream()
TEXT ·endStream(SB), NOSPLIT, $0-0
	SFENCE
	RET
